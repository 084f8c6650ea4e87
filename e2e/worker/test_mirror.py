"""A mirror of a real ledger in a real object store with object lock, and failures of this mirror."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from proofgate import _core
from proofgate.mirror.s3 import BucketTarget
from proofgate.mirror.target import MirrorError
from proofgate.mirror.target_address import parse

from e2e.auditing import AUDITOR, Audit, ask_and_wait, fetch, following
from e2e.commands import proofgate
from e2e.local_gateway import local_gateway
from e2e.object_store import KEYS, ObjectStore, object_store, put
from e2e.programs import PATIENCE, Program, wait_until


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Audit:
    """A ledger of three ended logs, one from a killed worker, and the beginning of a fourth log."""
    folder = tmp_path_factory.mktemp("mirrored")
    with local_gateway(folder, settings={"ledger": {"segmentBytes": 1 << 20}}) as gateway:
        assert gateway.worker is not None
        for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            ask_and_wait(gateway, 3)
            gateway.worker.stop(how)
            gateway.start_worker()
        gateway.worker.stop()
        key = gateway.verifying_key
    (folder / "auditor-key").write_text(_core.generate_key(AUDITOR)[0])
    home = folder / "audit"
    home.mkdir()
    shutil.move(folder / "ledger", home / "ledger")
    shutil.move(folder / "auditor-key", home / "auditor-key")
    return Audit(home, key)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("store")) as store:
        yield store


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)


def place(store: ObjectStore, bucket: str, **more: str) -> str:
    options = {"lock": "compliance", "days": "1", "endpoint": store.endpoint} | more
    return f"s3://{bucket}/llm?{urlencode(options)}"


@contextmanager
def mirroring(audit: Audit, to: str, *more: str, keys: dict[str, str] = KEYS) -> Iterator[tuple[Program, str]]:
    with pytest.MonkeyPatch.context() as patched:
        for name, value in keys.items():
            patched.setenv(name, value)
        with following(audit, "--new-aggregate", "--mirror", to, *more) as (program, url):
            yield program, url


def metric(url: str, name: str) -> float:
    lines = [line for line in fetch(f"{url}/metrics").splitlines() if line.startswith(f"proofgate_auditor_{name}{{")]
    return float(lines[0].split()[-1]) if lines else -1.0


def is_done(url: str, logs: int) -> bool:
    # At least two files of each log, and its last checkpoint.
    return metric(url, "mirror_objects_total") >= 3 * logs and metric(url, "mirror_lag_seconds") == 0


def found(url: str) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = json.loads(fetch(f"{url}/findings"))["findings"]
    return findings


def run(*arguments: str) -> tuple[int, str]:
    done = proofgate(*arguments)
    return done.returncode, done.stdout + done.stderr


def brought_back(audit: Audit, place: str, to: Path) -> tuple[int, str]:
    code, text = run("audit", "fetch", place, str(to))
    assert code == 0, text
    return run("ledger", "fsck", str(to), "--mirror", "--key", audit.key)


def test_a_ledger_in_a_mirror_cannot_be_deleted_or_replaced_and_passes_fsck_when_it_is_brought_back(
    history: Audit, store: ObjectStore, tmp_path: Path
) -> None:
    audit, client = history.copy(tmp_path / "audit"), store.make("locked")
    with mirroring(audit, place(store, "locked")) as (program, url):
        wait_until(lambda: is_done(url, 4), PATIENCE, "the logs are mirrored")
        assert found(url) == []
        assert program.stop() == 0
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in program.log.read_text()
    mirror = parse(place(store, "locked"))
    keys = list(mirror.keys(""))
    assert not [key for key in keys if key.rsplit("/", 1)[1] in ("salts", "tree", "resume", "erasures")]
    [segment, *_] = [f"llm/{key}" for key in keys if key.endswith(".seg")]
    assert isinstance(mirror, BucketTarget)
    [version] = [one for key, one in mirror._versions("") if f"llm/{key}" == segment]
    with pytest.raises(MirrorError, match="403"), client.request("DELETE", segment, {"versionId": version}):
        pass
    put(client, segment, b"rewritten")
    with client.request("DELETE", next(f"llm/{key}" for key in keys if key.endswith("/checkpoint"))) as answer:
        assert answer.status_code == 204, "a marker, before which the object still is"
    code, text = brought_back(audit, place(store, "locked"), tmp_path / "back")
    assert code == 0, text
    assert len(list((tmp_path / "back" / "0").iterdir())) == len(audit.logs())
    # For an auditor without state the mirror is new; it reports and keeps the overwritten object.
    shutil.rmtree(audit.state)
    with mirroring(audit, place(store, "locked")) as (_, url):
        wait_until(lambda: [one for one in found(url) if one["code"] == "mirror_conflict"], PATIENCE, "it is found")
        assert segment.removeprefix("llm/") in found(url)[0]["message"]


class Cutting:
    """Forwards bytes; when it has forwarded half of the first segment, it kills the store."""

    def __init__(self, store: ObjectStore) -> None:
        self.store, self.cut = store, threading.Event()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            client, _ = self.server.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client: socket.socket) -> None:
        with client, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.store.port)) as server:
            threading.Thread(target=self.answer, args=(server, client), daemon=True).start()
            while data := client.recv(1 << 16):
                if data.startswith(b"PUT ") and b".seg" in data[:200] and not self.cut.is_set():
                    server.sendall(data[: data.index(b"\r\n\r\n") + 40])
                    self.store.kill()
                    self.cut.set()
                    return
                server.sendall(data)

    def answer(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                client.sendall(data)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)


def test_a_store_that_dies_in_the_middle_of_an_upload_is_given_the_rest_when_it_is_back(
    history: Audit, store: ObjectStore, tmp_path: Path
) -> None:
    audit = history.copy(tmp_path / "audit")
    store.make("dying")
    proxy = Cutting(store)
    with mirroring(audit, place(store, "dying", endpoint=proxy.url), "--mirror-patience", "0.5") as (_, url):
        assert proxy.cut.wait(PATIENCE)
        wait_until(lambda: [one["code"] for one in found(url)] == ["mirror_lags"], PATIENCE, "it is reported")
        store.start()
        wait_until(lambda: is_done(url, 4), PATIENCE, "the rest is mirrored")
        wait_until(lambda: found(url) == [], PATIENCE, "nothing is found any more")
    code, text = brought_back(audit, place(store, "dying"), tmp_path / "back")
    assert code == 0, text


def test_a_foreign_object_in_the_place_of_a_log_is_found_and_the_others_are_mirrored(
    history: Audit, store: ObjectStore, tmp_path: Path
) -> None:
    audit, client = history.copy(tmp_path / "audit"), store.make("planted")
    planted = f"llm/ledger/0/{audit.logs()[0].name}/00000000000000000000.seg"
    put(client, planted, b"foreign")
    with mirroring(audit, place(store, "planted")) as (_, url):
        wait_until(lambda: is_done(url, 3), PATIENCE, "the others are mirrored")
        [finding] = found(url)
    assert (finding["code"], finding["verdict"]) == ("mirror_conflict", "diverged")
    assert planted.removeprefix("llm/") in finding["message"]


def test_wrong_credentials_and_a_bucket_without_a_lock_are_told_and_nothing_is_written(
    history: Audit, store: ObjectStore, tmp_path: Path
) -> None:
    audit, client = history.copy(tmp_path / "audit"), store.make("open", locked=False)
    wrong = KEYS | {"AWS_SECRET_ACCESS_KEY": "wrong-secret-0123456789"}
    with mirroring(audit, place(store, "open"), "--mirror-patience", "0.5", keys=wrong) as (program, url):
        wait_until(lambda: [one["code"] for one in found(url)] == ["mirror_lags"], PATIENCE, "it is reported")
        assert "403" in found(url)[0]["message"]
    shutil.rmtree(audit.state)
    with mirroring(audit, place(store, "open")) as (program, url):
        wait_until(lambda: [one["code"] for one in found(url)] == ["mirror_unlocked"], PATIENCE, "it is reported")
        assert "versioned" in found(url)[0]["message"]
    assert "wrong-secret" not in program.log.read_text()
    with client.request("GET", query={"list-type": "2"}) as answer:
        assert "<Contents>" not in answer.text
