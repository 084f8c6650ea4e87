"""A link signs its reader in once, for a limited time, and cannot be reused."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import auditor_double
import httpx
import pytest
from conftest import serving
from index_ledger import NOON, Log, bring_up
from signing import VKEY

from proofgate import _core
from proofgate.auditor.service import create_app
from proofgate.auditor.watch import LedgerWatcher
from proofgate.cli import main
from proofgate.index.access_log import AccessLog
from proofgate.index.index_services import IndexServices
from proofgate.index.readers import ReadersFile
from proofgate.index.routes import ReaderPort
from proofgate.index.sign_in_links import LINK_SECONDS, SESSION_SECONDS, SignInLinks

pytestmark = pytest.mark.usefixtures("fake_auditor")

Patch = pytest.MonkeyPatch
START = 1_800_000_000 * 10**9


@pytest.fixture
def links(tmp_path: Path) -> SignInLinks:
    return SignInLinks(tmp_path / "links")


def at(seconds: float, monkeypatch: Patch) -> None:
    monkeypatch.setattr("proofgate.index.sign_in_links.time.time_ns", lambda: START + int(seconds * 10**9))


def test_a_link_is_good_once(links: SignInLinks) -> None:
    token = links.make("ada")
    reader = links.use(token)
    assert reader is not None
    assert (reader.name, reader.tenant) == ("link:ada", None)
    assert links.use(token) is None
    assert links.use("never-made") is None
    assert links.use("../links") is None


def test_of_many_who_use_a_link_at_once_one_is_signed_in(links: SignInLinks) -> None:
    token = links.make("ada", "acme")
    with ThreadPoolExecutor(8) as pool:
        found = [one for one in pool.map(links.use, [token] * 32) if one is not None]
    assert [(one.name, one.tenant) for one in found] == [("link:ada", "acme")]


def test_a_link_ends_after_ten_minutes_and_lasts_no_longer_when_the_clock_is_set_back(
    links: SignInLinks, monkeypatch: Patch
) -> None:
    at(0, monkeypatch)
    first, second, third = (links.make("ada") for _ in range(3))
    at(LINK_SECONDS - 1, monkeypatch)
    reader = links.use(first)
    assert reader is not None
    assert reader.expires_at == (START // 1000) + (LINK_SECONDS - 1 + SESSION_SECONDS) * 10**6
    at(LINK_SECONDS, monkeypatch)
    assert links.use(second) is None
    at(-1, monkeypatch)
    assert links.use(third) is None


def test_the_folder_has_digests_for_its_owner_alone_and_loses_links_that_have_ended(
    links: SignInLinks, tmp_path: Path, monkeypatch: Patch
) -> None:
    at(0, monkeypatch)
    token = links.make("ada")
    [path] = (tmp_path / "links").iterdir()
    assert token not in path.name + path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    at(LINK_SECONDS, monkeypatch)
    links.make("ada")
    assert not path.exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"name": 1, "tenant": null, "until": 2}', "\ud800"])
def test_what_is_no_link_signs_nobody_in(links: SignInLinks, tmp_path: Path, content: str) -> None:
    token = links.make("ada")
    [path] = (tmp_path / "links").iterdir()
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    assert links.use(token) is None


@dataclass
class Port:
    """An auditor's port that accepts links, and a browser."""

    url: str
    client: httpx.Client
    links: SignInLinks
    folder: Path

    def sign_in(self, token: str) -> httpx.Response:
        return self.client.post(f"{self.url}/v1/sign-in/once", headers={"Authorization": f"Bearer {token}"})

    def tenants(self) -> set[str]:
        answer = self.client.get(f"{self.url}/v1/exchanges").raise_for_status()
        return {row["tenant"] for row in answer.json()["exchanges"]}

    def recorded(self) -> list[dict[str, Any]]:
        [file] = self.folder.glob("access-*.jsonl")
        return [json.loads(line) for line in file.read_text().splitlines()[1:]]


@pytest.fixture
def port(tmp_path: Path, links: SignInLinks) -> Iterator[Port]:
    log = Log(tmp_path / "ledger")
    log.exchange(1, NOON)
    log.exchange(2, NOON + 1, tenant="globex")
    log.sign()
    bring_up(tmp_path / "index", tmp_path / "ledger", 100)
    (tmp_path / "readers").write_text("{}")
    double = auditor_double.Auditor("ledger", "state", "PRIVATE+KEY+x", VKEY, 1, 1, 1, True)
    watch = LedgerWatcher(cast("_core.Auditor", double), 1 << 20)
    with closing(AccessLog(tmp_path, 7)) as access_log:
        readers = ReadersFile(tmp_path / "readers")
        desk = ReaderPort(tmp_path / "index", tmp_path / "ledger", readers, access_log, links=links)
        with serving(create_app(watch, IndexServices(reader_port=desk))) as url, httpx.Client() as client:
            yield Port(url, client, links, tmp_path)


def code_of(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, str(answer.json()["error"]["code"])


def test_a_reader_of_a_link_has_a_session_until_it_signs_out(port: Port) -> None:
    token = port.links.make("ada")
    answer = port.sign_in(token)
    assert answer.json() == {"name": "link:ada", "tenant": None}
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("HttpOnly", "SameSite=strict", f"Max-Age={SESSION_SECONDS}"))
    assert token not in cookie
    assert port.tenants() == {"acme", "globex"}
    told = port.client.get(f"{port.url}/v1/sign-in").json()
    assert told == {"readers": True, "oidc": False, "reader": {"name": "link:ada", "tenant": None}}
    assert port.recorded()[-1]["reader"] == "link:ada"
    assert port.client.post(f"{port.url}/v1/sign-out").status_code == 200
    assert code_of(port.client.get(f"{port.url}/v1/exchanges")) == (401, "not_a_reader")


def test_a_link_of_a_tenant_shows_that_tenant_alone(port: Port) -> None:
    port.sign_in(port.links.make("ada", "globex")).raise_for_status()
    assert port.tenants() == {"globex"}


def test_a_link_that_was_used_is_refused_and_recorded_without_its_token(
    port: Port, capfd: pytest.CaptureFixture[str]
) -> None:
    token = port.links.make("ada")
    port.sign_in(token).raise_for_status()
    port.client.cookies.clear()
    assert code_of(port.sign_in(token)) == (401, "link_not_valid")
    assert port.recorded()[-1]["sign_in"] == "link_not_valid"
    assert token not in json.dumps(port.recorded())
    assert token not in "".join(capfd.readouterr())


def test_a_token_counts_in_a_header_alone_and_by_post(port: Port) -> None:
    token = port.links.make("ada")
    once = f"{port.url}/v1/sign-in/once"
    assert code_of(port.client.post(f"{once}?token={token}", data={"token": token}))[0] == 401
    get = port.client.get(once, headers={"Authorization": f"Bearer {token}"})
    assert get.status_code == 405
    assert port.sign_in(token).status_code == 200


def test_a_session_is_no_key_and_a_token_is_none(port: Port) -> None:
    token = port.links.make("ada")
    key = {"Authorization": f"Bearer {token}"}
    assert code_of(port.client.get(f"{port.url}/v1/exchanges", headers=key)) == (401, "not_a_reader")
    assert port.sign_in(token).status_code == 200


def test_links_need_readers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ledger").mkdir()
    arguments = ["audit", "run", "--ledger", str(tmp_path / "ledger"), "--state", str(tmp_path / "state")]
    arguments += ["--signing-key", "x", "--ledger-key", VKEY, "--sign-in-links", str(tmp_path)]
    assert main(arguments) == 2
    assert "--sign-in-links needs --index and --readers" in capsys.readouterr().err
    assert main([*arguments, "--index", str(tmp_path / "index")]) == 2
    assert "--sign-in-links needs --readers" in capsys.readouterr().err
