"""A worker's ledger folder on its admin port: evidence for clients with the token, and nothing else."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from conftest import PATIENCE_SECONDS, ConfigDirectory, Controls, attached, client_of, serving, started
from hypothesis import given, settings
from hypothesis import strategies as st

from proofgate.admin import create_app
from proofgate.config import load
from proofgate.reading import files
from proofgate.reading.files import MAX_READ_BYTES, LedgerFiles, LedgerReadError
from proofgate.reading.routes import MAX_CONCURRENT_READS, LedgerReadRoutes
from proofgate.reading.token import auditor_token

ADMIN_TOKEN = "0123456789abcdef-admin"
LOG = "0/01M89PCZT1JE2K4A4FYY15YK69"
SEGMENT = f"{LOG}/00000000000000000000.seg"
AUTHORIZED = {"Authorization": f"Bearer {auditor_token(ADMIN_TOKEN)}"}

EVIDENCE = (
    "00000000000000000000.seg",
    "00000000000000000001.next",
    "00000000000000000000.record",
    "00000000000000000000.tlog-proof",
    "00000000000000000007.consistency",
    "01M89Q0V2S1R6T3Y8B5N7C4D9E.checkpoint",
    "checkpoint",
    "erasures",
    "tombstone",
    "tree",
)
PRIVATE = ("salts", "resume", "resume.tmp", "checkpoint.tmp", "unlocked", "payloads", "keeping.tmp", ".x")


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    folder = tmp_path / "ledger"
    log = folder / LOG
    log.mkdir(parents=True)
    for name in EVIDENCE + PRIVATE:
        (log / name).write_bytes(name.encode())
    (folder / "0" / "limits").write_text("counters")
    (folder / "ledger-name").write_text("proofgate.dev/local\n")
    (folder / "key-successions").mkdir()
    (folder / "key-successions" / "made-up.note").write_text("a statement")
    (tmp_path / "secret").write_text("outside")
    return folder


class Port:
    """The admin port of a worker with this ledger."""

    def __init__(self, url: str, reading: LedgerReadRoutes) -> None:
        self.client = client_of(url)
        self.reading = reading

    def names(self, path: str = "") -> httpx.Response:
        return self.client.get("/ledger/names", params={"path": path}, headers=AUTHORIZED)

    def file(self, path: str, **more: int) -> httpx.Response:
        return self.client.get("/ledger/file", params={"path": path, **more}, headers=AUTHORIZED)


@pytest.fixture
def port(config_directory: ConfigDirectory, ledger: Path) -> Iterator[Port]:
    reading = LedgerReadRoutes(ledger)
    with (
        started(load(config_directory.file)) as worker,
        attached(worker) as typed,
        serving(create_app(typed, Controls(worker, ADMIN_TOKEN), reading)) as url,
    ):
        port = Port(url, reading)
        with port.client:
            yield port


def code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, str(response.json()["error"]["code"])


def test_folders_tell_evidence_and_nothing_else(port: Port) -> None:
    assert port.names().json() == {"names": ["0", "key-successions", "ledger-name"]}
    assert port.names("0").json() == {"names": [LOG.split("/")[1]]}
    assert port.names(LOG).json() == {"names": sorted(EVIDENCE)}
    assert port.names("key-successions").json() == {"names": ["made-up.note"]}


def test_a_file_is_told_in_ranges_with_its_length(port: Port, ledger: Path) -> None:
    (ledger / SEGMENT).write_bytes(bytes(range(100)))
    whole = port.file(SEGMENT)
    assert (whole.status_code, whole.content, whole.headers["Proofgate-Length"]) == (
        200,
        bytes(range(100)),
        "100",
    )
    assert port.file(SEGMENT, offset=10, most=5).content == bytes(range(10, 15))
    assert port.file(SEGMENT, offset=95, most=50).content == bytes(range(95, 100))
    behind = port.file(SEGMENT, offset=1 << 62)
    assert (behind.content, behind.headers["Proofgate-Length"]) == (b"", "100")
    assert port.file("ledger-name").text == "proofgate.dev/local\n"


@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_no_evidence_is_not_read(port: Port, name: str) -> None:
    assert code(port.file(f"{LOG}/{name}")) == (403, "not_evidence")


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "/etc/passwd",
        "0/../../secret",
        f"{LOG}/../../../secret",
        f"{LOG}/./checkpoint",
        f"{LOG}//checkpoint",
        f"{LOG}/checkpoint/",
        f"{LOG}/checkpoint\n",
        f"{LOG}/checkpoint\0",
        f"0/{LOG.split('/')[1].lower()}/checkpoint",
        "key-successions/../ledger-name",
        "0/limits",
        "",
    ],
)
def test_a_path_that_leads_anywhere_else_is_refused(port: Port, path: str) -> None:
    assert code(port.file(path)) == (403, "not_evidence")
    if path:
        assert code(port.names(path)) == (403, "not_evidence")


_PART = st.sampled_from(
    ["..", ".", "", "0", LOG.split("/")[1], "checkpoint", "salts", "secret", "\0", "ledger-name"]
)


@settings(max_examples=300)
@given(path=st.text(max_size=40) | st.lists(_PART, max_size=5).map("/".join))
def test_no_path_leads_out_of_what_is_evidence(tmp_path_factory: pytest.TempPathFactory, path: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "walked"
    log = folder / "ledger" / LOG
    if not log.exists():
        log.mkdir(parents=True)
        for private in (folder / "secret", log / "salts", log / "secret", folder / "ledger" / "secret"):
            private.write_text("private")
        for evidence in (log / "checkpoint", folder / "ledger" / "ledger-name"):
            evidence.write_text("evidence")
    read = LedgerFiles(folder / "ledger")
    with suppress(LedgerReadError):
        assert read.read(path, 0, 100) == (8, b"evidence")
    with suppress(LedgerReadError):
        assert not {"secret", "salts", "..", "."} & set(read.names(path))


def a_link_to_a_file(place: Path) -> None:
    place.symlink_to(place.parents[3] / "secret")


def a_pipe(place: Path) -> None:
    os.mkfifo(place)


def a_folder(place: Path) -> None:
    place.mkdir()


def a_socket(place: Path) -> None:
    # A socket's path must be short.
    above = os.open(place.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(f"/proc/self/fd/{above}/{place.name}")
    os.close(above)


@pytest.mark.parametrize("put", [a_link_to_a_file, a_pipe, a_folder, a_socket])
def test_what_is_no_file_is_not_there(port: Port, ledger: Path, put: Callable[[Path], None]) -> None:
    place = ledger / LOG / "checkpoint"
    place.unlink()
    put(place)
    assert code(port.file(f"{LOG}/checkpoint")) == (404, "no_such_file")


def test_a_folder_that_is_a_link_is_not_there(port: Port, ledger: Path, tmp_path: Path) -> None:
    (ledger / "0").rename(tmp_path / "moved")
    (ledger / "0").symlink_to(tmp_path / "moved")
    assert code(port.names("0")) == (404, "no_such_file")
    assert code(port.file(SEGMENT)) == (404, "no_such_file")


def test_what_is_gone_is_told_apart_from_a_path_that_is_none(port: Port) -> None:
    assert code(port.file(f"{LOG}/00000000000000000009.seg")) == (404, "no_such_file")
    assert code(port.client.get("/ledger/other", headers=AUTHORIZED)) == (404, "not_found")


@pytest.mark.parametrize(
    "query", [{"offset": -1}, {"offset": 1 << 63}, {"most": MAX_READ_BYTES + 1}, {"most": -1}]
)
def test_a_range_that_is_none_is_refused(port: Port, query: dict[str, int]) -> None:
    assert code(port.file(SEGMENT, **query)) == (400, "invalid_request")


@pytest.mark.parametrize("path", ["/ledger/names", "/ledger/file?path=ledger-name"])
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, (401, "missing_token")),
        ("Basic x", (401, "missing_token")),
        (f"Bearer {auditor_token(ADMIN_TOKEN)}x", (403, "wrong_token")),
        # The admin token cannot read evidence, and the auditor's token cannot drain workers.
        (f"Bearer {ADMIN_TOKEN}", (403, "wrong_token")),
    ],
)
def test_nobody_reads_without_the_token(
    port: Port, path: str, header: str | None, expected: tuple[int, str]
) -> None:
    headers = {} if header is None else {"Authorization": header}
    assert code(port.client.get(path, headers=headers)) == expected
    assert port.reading.metrics() == ""


def test_the_auditor_token_drains_nothing(port: Port) -> None:
    assert code(port.client.post("/drain", headers=AUTHORIZED)) == (403, "wrong_token")


def test_no_more_than_a_few_read_at_a_time(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, leave = threading.Semaphore(0), threading.Event()
    read = LedgerFiles.read

    def wait(self: LedgerFiles, path: str, offset: int, most: int) -> tuple[int, bytes]:
        entered.release()
        assert leave.wait(PATIENCE_SECONDS)
        return read(self, path, offset, most)

    monkeypatch.setattr(LedgerFiles, "read", wait)
    with ThreadPoolExecutor(MAX_CONCURRENT_READS) as pool:
        reading = [pool.submit(port.file, SEGMENT) for _ in range(MAX_CONCURRENT_READS)]
        for _ in range(MAX_CONCURRENT_READS):
            assert entered.acquire(timeout=PATIENCE_SECONDS)
        assert code(port.file(SEGMENT)) == (503, "busy")
        # Probes do not wait for these reads.
        assert port.client.get("/readyz").status_code == 200
        leave.set()
        assert [done.result().status_code for done in reading] == [200] * MAX_CONCURRENT_READS
    assert port.file(SEGMENT).status_code == 200
    metrics = port.client.get("/metrics").text
    assert 'proofgate_ledger_reads_total{result="busy"} 1\n' in metrics
    assert f'proofgate_ledger_reads_total{{result="ok"}} {MAX_CONCURRENT_READS + 1}\n' in metrics


def test_a_failed_read_gives_its_place_back(port: Port) -> None:
    for _ in range(MAX_CONCURRENT_READS + 1):
        assert code(port.file(f"{LOG}/salts")) == (403, "not_evidence")
    assert port.names().status_code == 200


def test_a_folder_of_too_many_names_is_not_told(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_NAMES", 2)
    with pytest.raises(LedgerReadError) as refused:
        LedgerFiles(ledger).names(LOG)
    assert refused.value.code == "too_many_names"


def test_a_file_that_becomes_shorter_while_it_is_read_is_told_as_it_is(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pread", lambda _file, _most, _offset: b"")
    assert LedgerFiles(ledger).read(SEGMENT, 3, 100) == (3, b"")


def test_a_seal_has_been_read_when_two_more_looks_have_begun(port: Port) -> None:
    assert port.reading.is_fully_read_since(0), "nobody looks"
    port.names()
    assert port.reading.has_active_auditor()
    before = port.reading.pass_count
    for expected in (False, False, True):
        assert port.reading.is_fully_read_since(before) is expected
        port.names()
