"""A ledger that workers serve, read from workers that fail, stall and lie: the reader never treats such an
answer as the worker's content."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import PATIENCE_SECONDS, refusing_port, serving
from fastapi import FastAPI
from hypothesis import given, settings
from hypothesis import strategies as st

from proofgate.auditor import served_ledger as served_module
from proofgate.auditor import worker_files
from proofgate.auditor.served_ledger import ServedLedger, check_worker_urls, read_worker_list
from proofgate.auditor.worker_files import BLOCK_BYTES, UnreadableError, WorkerError, WorkerFiles
from proofgate.http_errors import ApiError, handle_api_error
from proofgate.reading.routes import LedgerReadRoutes

LOG = "01M89PCZT1JE2K4A4FYY15YK69"
OTHER = "01M89Q0V2S1R6T3Y8B5N7C4D9E"
SEGMENT = "00000000000000000000.seg"


def answer(status: int = 200, body: bytes = b"", **headers: object) -> bytes:
    lines = [f"HTTP/1.1 {status} x", f"content-length: {headers.pop('content_length', len(body))}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refusal(status: int, code: str) -> bytes:
    return answer(status, json.dumps({"error": {"code": code, "message": "x"}}).encode())


def file(content: bytes, length: object = None) -> bytes:
    return answer(200, content, proofgate_length=len(content) if length is None else length)


Script = Callable[[socket.socket, int], None]


@contextmanager
def broken_worker(script: Script, look_seconds: float = 60) -> Iterator[WorkerFiles]:
    """A worker whose answer to each request, by number, comes from the script."""
    listener = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve() -> None:
        number = 0
        while not stop.is_set():
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                while True:
                    asked = b""
                    while not asked.endswith(b"\r\n\r\n"):
                        try:
                            more = connection.recv(65536)
                        except OSError:
                            more = b""
                        if not more:
                            break
                        asked += more
                    if not asked.endswith(b"\r\n\r\n"):
                        break
                    try:
                        script(connection, number)
                    except OSError:
                        break
                    number += 1
                    if connection.fileno() < 0:
                        break

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    files = WorkerFiles(f"http://127.0.0.1:{listener.getsockname()[1]}", None, look_seconds)
    try:
        yield files
    finally:
        files.close()
        stop.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE_SECONDS)


def says(*answers: bytes) -> Script:
    return lambda connection, number: connection.sendall(answers[min(number, len(answers) - 1)])


def breaks_off(connection: socket.socket, _number: int) -> None:
    connection.sendall(answer(200, b"abc", content_length=10, proofgate_length=10))
    connection.close()


def resets(connection: socket.socket, _number: int) -> None:
    # This option makes close() reset the connection.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    connection.close()


def pours(connection: socket.socket, _number: int) -> None:
    connection.sendall(b"HTTP/1.1 200 x\r\nproofgate-length: 10\r\n\r\n")
    while True:
        connection.sendall(bytes(1 << 16))


def pours_headers(connection: socket.socket, _number: int) -> None:
    connection.sendall(b"HTTP/1.1 200 x\r\n")
    while True:
        connection.sendall(b"x: y\r\n" * 1000)


def stalls(connection: socket.socket, _number: int) -> None:
    connection.recv(1)


def drips(connection: socket.socket, _number: int) -> None:
    for byte in file(bytes(10)):
        connection.sendall(bytes([byte]))
        time.sleep(0.03)


MISBEHAVIOUR: dict[str, Script] = {
    "fewer bytes than the file has": says(file(b"abc", 10)),
    "more bytes than the file has": says(file(b"abcdefghij", 3)),
    "more bytes than were asked for": says(file(b"x" * 11, 100)),
    "no length": says(answer(200, b"abc")),
    "a length that is no number": says(file(b"abc", "three")),
    "a length below nothing": says(file(b"", -1)),
    "a length beyond all files": says(file(b"", "9" * 40)),
    "a body that breaks off": breaks_off,
    "a reset": resets,
    "bytes without end": pours,
    "a head without end": pours_headers,
    "a stall": stalls,
    "an answer by drips": drips,
    "no HTTP": says(b"SSH-2.0-x\r\n\r\n"),
    "a failure": says(refusal(500, "ledger_io")),
    "busy": says(refusal(503, "busy")),
    "not for this token": says(refusal(403, "wrong_token")),
    "another server's 404": says(answer(404, b"<html>not found</html>")),
    "a worker's 404 of a route it has not": says(refusal(404, "not_found")),
    "a redirect": says(answer(302, b"", location="http://127.0.0.1:1/")),
    "an empty success of another kind": says(answer(204, b"")),
}


@pytest.mark.parametrize("how", MISBEHAVIOUR)
def test_what_is_no_whole_answer_says_nothing_of_the_file(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_files, "RESPONSE_TIMEOUT_SECONDS", 0.3)
    with broken_worker(MISBEHAVIOUR[how]) as files, pytest.raises(WorkerError):
        files.read(f"0/{LOG}/checkpoint", 0, 10)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{}",
        b'{"names": 1}',
        b'{"names": [1]}',
        b'{"names": ["a/b"]}',
        b'{"names": [""]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_list_of_names_is_none(body: bytes) -> None:
    with broken_worker(says(answer(200, body))) as files, pytest.raises(WorkerError):
        files.list_folder("0")


@settings(max_examples=60)
@given(
    status=st.sampled_from([200, 204, 301, 400, 401, 403, 404, 500, 503]),
    length=st.none() | st.text(max_size=24) | st.integers().map(str),
    body=st.binary(max_size=64)
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["names", "error", "code"]), inner),
    ).map(lambda value: json.dumps(value).encode()),
)
def test_whatever_is_answered_is_a_whole_answer_or_none(status: int, length: str | None, body: bytes) -> None:
    class Response:
        def __init__(self) -> None:
            self.status, self.length = status, 0

        def __enter__(self) -> Response:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def read(self, most: int) -> bytes:
            return body[:most]

        def getheader(self, _name: str) -> str | None:
            return length

    files = WorkerFiles("http://127.0.0.1:1", None)
    files._connection.get = lambda *_: Response()  # type: ignore[assignment, method-assign]
    with suppress(WorkerError, FileNotFoundError, UnreadableError):
        names = files.list_folder("0")
        assert all(name and "/" not in name for name in names)
    with suppress(WorkerError, FileNotFoundError, UnreadableError):
        told, content = files.read(f"0/{LOG}/checkpoint", 3, 10)
        assert len(content) == max(0, min(10, told - 3))


def test_only_the_workers_own_word_says_that_a_file_is_not_there() -> None:
    with broken_worker(says(refusal(404, "no_such_file"))) as files, pytest.raises(FileNotFoundError):
        files.read(f"0/{LOG}/checkpoint", 0, 10)


@pytest.mark.parametrize("code", ["ledger_io", "too_many_names"])
def test_what_a_worker_cannot_read_costs_nothing_but_that(code: str) -> None:
    with broken_worker(says(refusal(503, code), file(b"abc"))) as files:
        with pytest.raises(UnreadableError):
            files.read(f"0/{LOG}/checkpoint", 0, 10)
        assert files.read(f"0/{LOG}/checkpoint", 0, 10) == (3, b"abc")


def test_a_connection_that_the_worker_let_go_is_made_anew() -> None:
    def closes(connection: socket.socket, _number: int) -> None:
        connection.sendall(file(b"abc"))
        connection.close()

    with broken_worker(closes) as files:
        for _ in range(3):
            assert files.read(f"0/{LOG}/checkpoint", 0, 10) == (3, b"abc")


def test_a_slow_worker_has_no_more_than_its_share_of_a_look() -> None:
    with broken_worker(says(file(b"abc")), look_seconds=0) as files:
        assert files.read(f"0/{LOG}/checkpoint", 0, 10) == (3, b"abc")
        with pytest.raises(WorkerError, match="of one poll"):
            files.read(f"0/{LOG}/checkpoint", 0, 10)
        files.start_round()
        assert files.read(f"0/{LOG}/checkpoint", 0, 10) == (3, b"abc")


@pytest.mark.parametrize(
    "url", ["", "worker", "ftp://w", "http://", "http://u:p@w", "http://w:x", "http://w/?a", "http://w/#a"]
)
def test_a_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - one of urllib, and ours
        check_worker_urls({"0": url})


@pytest.mark.parametrize("shard", ["", "x", "-1", "01", "1" * 10, "²"])
def test_a_shard_that_is_none_is_refused(shard: str) -> None:
    with pytest.raises(ValueError, match="not a shard number"):
        check_worker_urls({shard: "http://w"})


@pytest.mark.parametrize("text", ["", "[]", '{"0": 1}', '{"0": null}', "[" * 100_000])
def test_a_list_of_workers_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "list").write_text(text)
    with pytest.raises(ValueError):  # noqa: PT011 - its sentence differs
        read_worker_list(tmp_path / "list")


class Folders:
    """Correct workers with a folder each, and the list of them."""

    def __init__(self, tmp_path: Path) -> None:
        self.folders = [tmp_path / str(shard) for shard in range(2)]
        self.list: dict[str, str] = {}
        self.made: list[ServedLedger] = []
        for shard, folder in enumerate(self.folders):
            log = folder / str(shard) / LOG
            log.mkdir(parents=True)
            (log / "checkpoint").write_text(f"of {shard}")
            (log / SEGMENT).write_bytes(bytes(200))

    def ledger(self, **more: float) -> ServedLedger:
        self.made.append(ServedLedger(lambda: self.list, None, **more))
        return self.made[-1]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folders]:
    # All of these workers answer or refuse quickly, but a busy machine may need longer.
    monkeypatch.setattr(worker_files, "CONNECT_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(worker_files, "RESPONSE_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    monkeypatch.setattr(served_module, "_LISTING_TIMEOUT_SECONDS", PATIENCE_SECONDS)
    made = Folders(tmp_path)

    def app(folder: Path) -> FastAPI:
        app = FastAPI()
        app.add_exception_handler(ApiError, handle_api_error)
        LedgerReadRoutes(folder).add_routes(app, lambda _request: None)
        return app

    with serving(app(made.folders[0])) as one, serving(app(made.folders[1])) as two:
        made.list = {"0": one, "1": two}
        yield made
        for ledger in made.made:
            ledger.close()


def reach(ledger: ServedLedger) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(ledger.start_pass())
    return told


ANSWERS = {"answers": True, "failing": None}


def test_the_folders_of_all_workers_are_one_tree(folders: Folders) -> None:
    ledger = folders.ledger()
    assert reach(ledger) == {"0": ANSWERS, "1": ANSWERS}
    assert ledger.list("ledger") == ["0", "1"]
    assert ledger.list("ledger/1") == [LOG]
    assert ledger.list(f"ledger/0/{LOG}") == [SEGMENT, "checkpoint"]
    assert ledger.open(f"ledger/1/{LOG}/checkpoint") == (4, b"of 1")
    # The content of an empty segment is not cached, because records may be written shortly after.
    assert ledger.open(f"ledger/1/{LOG}/{SEGMENT}") == (200, b"")
    assert ledger.read(f"ledger/1/{LOG}/{SEGMENT}", 150, 100) == bytes(50)
    for path in (f"ledger/1/{LOG}/tombstone", f"ledger/1/{OTHER}/checkpoint"):
        with pytest.raises(FileNotFoundError):
            ledger.open(path)
    assert ledger.reachable_by_shard() == {"0": True, "1": True}


def test_a_log_is_read_from_where_it_lies(folders: Folders) -> None:
    planted = folders.folders[0] / "1" / OTHER
    planted.mkdir(parents=True)
    (planted / "checkpoint").write_text("planted")
    (folders.folders[0] / "7" / OTHER).mkdir(parents=True)
    ledger = folders.ledger()
    assert reach(ledger) == {"0": ANSWERS, "1": ANSWERS, "7": ANSWERS}
    assert ledger.list("ledger/1") == [LOG, OTHER]
    assert ledger.open(f"ledger/1/{OTHER}/checkpoint") == (7, b"planted")
    assert ledger.open(f"ledger/1/{LOG}/checkpoint") == (4, b"of 1")


def test_a_worker_that_does_not_answer_is_told_and_the_others_are_read(folders: Folders) -> None:
    with refusing_port() as port:
        folders.list["1"] = f"http://127.0.0.1:{port}"
        ledger = folders.ledger()
        assert reach(ledger) == {"0": ANSWERS, "1": {"answers": False, "failing": None}}
        assert ledger.list("ledger") == ["0"]
        with pytest.raises(WorkerError, match="cannot be reached"):
            ledger.list(f"ledger/1/{LOG}")
        impatient = folders.ledger(patience=0)
        told = reach(impatient)["1"]
        assert not told["answers"]
        assert "cannot be reached" in told["failing"]
        assert impatient.reachable_by_shard() == {"0": True, "1": False}


def test_a_worker_that_fails_in_the_middle_is_asked_no_more_and_counts_as_away(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = folders.ledger(patience=0)
    assert reach(ledger)["0"] == ANSWERS
    asked = []

    def fail(_self: WorkerFiles, path: str, _offset: int, _most: int) -> tuple[int, bytes]:
        asked.append(path)
        raise WorkerError("it broke")

    with monkeypatch.context() as broken:
        broken.setattr(WorkerFiles, "read", fail)
        for _ in range(3):
            with pytest.raises(WorkerError, match="it broke"):
                ledger.open(f"ledger/0/{LOG}/checkpoint")
    assert len(asked) == 1
    # The worker is not asked for a while; then it can be read, and the error stays until a pass has completed.
    assert reach(ledger)["0"]["answers"] is False
    monkeypatch.setattr(served_module._Worker, "is_due", lambda self: self.asked is None)
    assert "it broke" in reach(ledger)["0"]["failing"]
    assert ledger.open(f"ledger/0/{LOG}/checkpoint") == (4, b"of 0")
    assert reach(ledger)["0"] == ANSWERS


def test_a_worker_that_left_the_list_is_read_for_as_long_as_it_answers(folders: Folders) -> None:
    ledger = folders.ledger()
    reach(ledger)
    url = folders.list.pop("1")
    assert reach(ledger) == {"0": ANSWERS, "1": ANSWERS}
    assert ledger.open(f"ledger/1/{LOG}/checkpoint") == (4, b"of 1")
    ledger._workers["1"].record_failure("it is gone")
    assert reach(ledger) == {"0": ANSWERS}
    folders.list["1"] = url
    assert reach(ledger) == {"0": ANSWERS, "1": ANSWERS}


def test_a_list_that_cannot_be_read_is_the_one_before(folders: Folders) -> None:
    ledger = folders.ledger()
    folders.list["1"] = "no URL"
    assert reach(ledger) == {"0": ANSWERS, "1": ANSWERS}


def test_statements_of_all_workers_are_read_and_where_they_differ_both_are(folders: Folders) -> None:
    name = "0" * 32 + ".note"
    for folder, content in zip(folders.folders, ("one", "other"), strict=True):
        (folder / "key-successions").mkdir()
        (folder / "key-successions" / name).write_text(content)
    ledger = folders.ledger()
    reach(ledger)
    assert ledger.list("ledger/key-successions") == [name, f"1-{name}"]
    assert ledger.open(f"ledger/key-successions/{name}") == (3, b"one")
    assert ledger.open(f"ledger/key-successions/1-{name}") == (5, b"other")


@pytest.mark.parametrize(
    "names",
    [
        {"": [str(shard) for shard in range(1025)]},
        {
            "": ["0", "1"],
            "0": [f"a{number}" for number in range(20_000)],
            "1": [f"b{n}" for n in range(20_000)],
        },
        {"": ["key-successions"], "key-successions": [f"{number}.note" for number in range(257)]},
    ],
    ids=["shards", "logs", "statements"],
)
def test_a_worker_that_makes_up_more_than_one_can_hold_is_not_believed(
    folders: Folders, names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = folders.ledger(patience=0)
    folders.list = {"0": folders.list["0"]}
    monkeypatch.setattr(WorkerFiles, "list_folder", lambda _self, folder: names.get(folder, []))
    assert "it reports too many" in reach(ledger)["0"]["failing"]


def test_whatever_goes_wrong_with_one_worker_the_others_are_read(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = folders.ledger(patience=0)
    hold = served_module._Worker.list_contents

    def breaks(self: Any) -> Any:
        if self.shard == "0":
            raise ZeroDivisionError
        return hold(self)

    monkeypatch.setattr(served_module._Worker, "list_contents", breaks)
    told = reach(ledger)
    assert (told["0"]["answers"], told["1"]) == (False, ANSWERS)


def test_a_block_is_no_larger_than_a_block(folders: Folders) -> None:
    content = bytes(range(256)) * (BLOCK_BYTES // 256 + 1)
    (folders.folders[0] / "0" / LOG / SEGMENT).write_bytes(content)
    ledger = folders.ledger()
    reach(ledger)
    path = f"ledger/0/{LOG}/{SEGMENT}"
    assert ledger.open(path) == (len(content), content[:128])
    assert ledger.read(path, 0, 1 << 40) == content[:BLOCK_BYTES]
    assert ledger.read(path, BLOCK_BYTES, 1 << 40) == content[BLOCK_BYTES:]
    assert ledger.read(path, len(content), 10) == b""
