"""Requests and answers take no more memory of a worker than is configured, and the worker releases it."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import answer, chat_request, closed, error_of, send, status_of

MEBIBYTE = 1024 * 1024
BODY = 10 * MEBIBYTE
BUDGET = 64 * MEBIBYTE
LIMITS = {"limits": {"bodyBytes": BODY, "bufferedBytes": BUDGET}}
# Other memory for one request or answer, and memory that the allocator keeps.
SLACK = 64 * MEBIBYTE
# The memory that may remain after an attack.
REST = 24 * MEBIBYTE
SMALL = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()


@dataclass(frozen=True)
class Memory:
    """The resident memory of a worker in bytes, compared with an earlier idle time."""

    status: Path
    before: int

    @classmethod
    def of(cls, gateway: LocalGateway) -> Memory:
        assert gateway.worker is not None
        # A first exchange creates everything that is created only once.
        assert status_of(send(gateway.address, chat_request(SMALL, KEYS["globex"]))) == 200
        status = Path(f"/proc/{gateway.worker.process.pid}/status")
        return cls(status, _field(status, "VmRSS"))

    @property
    def growth(self) -> int:
        return _field(self.status, "VmRSS") - self.before

    @property
    def highest(self) -> int:
        return _field(self.status, "VmHWM") - self.before


def _field(status: Path, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", status.read_text(), re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


def head(path: str, tenant: str, framing: str) -> bytes:
    lines = f"POST {path} HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer {KEYS[tenant]}\r\n{framing}\r\n\r\n"
    return lines.encode()


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def connect(gateway: LocalGateway) -> socket.socket:
    host, port = gateway.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=PATIENCE)


def ask(connection: socket.socket, request: bytes) -> bytes:
    """Sends a request on a connection that stays open, and reads the answer's head and body."""
    connection.sendall(request)
    received = b""
    while b"\r\n\r\n" not in received:
        received += connection.recv(65536) or closed()
    front, _, rest = received.partition(b"\r\n\r\n")
    length = int(front.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
    while len(rest) < length:
        rest += connection.recv(65536) or closed()
    return front + b"\r\n\r\n" + rest


def is_served(gateway: LocalGateway, tenant: str = "globex") -> bool:
    return status_of(send(gateway.address, chat_request(SMALL, KEYS[tenant]))) == 200


def assert_bounded(gateway: LocalGateway, memory: Memory) -> None:
    wait_until(lambda: memory.growth < REST, PATIENCE, f"{memory.growth} bytes are given back")
    assert memory.highest < BUDGET + SLACK
    assert is_served(gateway)


def test_bodies_that_were_refused_are_not_kept_by_their_connections(folder: Path) -> None:
    garbage = b"x" * BODY
    with local_gateway(folder, settings=LIMITS) as gateway, ExitStack() as stack:
        memory = Memory.of(gateway)
        for number in range(60):
            connection = stack.enter_context(connect(gateway))
            path, code = [("/v1/nothing", 404), ("/v1/chat/completions", 400)][number % 2]
            request = head(path, "acme", "Transfer-Encoding: chunked") + chunked(garbage)
            assert status_of(ask(connection, request)) == code
            assert memory.growth < BUDGET + SLACK
            assert number % 10 or is_served(gateway)
        assert_bounded(gateway, memory)


def test_a_byte_of_the_next_request_does_not_keep_the_body_before_it(folder: Path) -> None:
    # The answer is late enough that the worker sees the byte after the request.
    prompt = "mock:latency=30 ".ljust(BODY - 1024, "x")
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": prompt}]}).encode()
    request = head("/v1/chat/completions", "acme", f"Content-Length: {len(body)}") + body + b"P"
    with local_gateway(folder, settings=LIMITS) as gateway, ExitStack() as stack:
        memory = Memory.of(gateway)
        for _ in range(30):
            connection = stack.enter_context(connect(gateway))
            assert status_of(ask(connection, request)) == 200
            assert memory.growth < BUDGET + SLACK
        assert_bounded(gateway, memory)


def test_connections_that_wait_keep_little_of_the_requests_they_had(folder: Path) -> None:
    large = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x" * 60_000}]}).encode()
    request = head("/v1/chat/completions", "acme", f"Content-Length: {len(large)}") + large
    with local_gateway(folder, settings=LIMITS) as gateway, ExitStack() as stack:
        memory = Memory.of(gateway)
        for _ in range(400):
            connection = stack.enter_context(connect(gateway))
            assert status_of(ask(connection, request)) == 200
        assert memory.growth < 400 * 24 * 1024
        assert is_served(gateway)


def test_what_is_sent_ahead_of_its_turn_is_read_up_to_a_few_kibibytes(folder: Path) -> None:
    waiting = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "mock:hang"}]}).encode()
    request = head("/v1/chat/completions", "acme", f"Content-Length: {len(waiting)}") + waiting
    with local_gateway(folder, settings=LIMITS) as gateway, ExitStack() as stack:
        memory = Memory.of(gateway)
        for _ in range(400):
            connection = stack.enter_context(connect(gateway))
            connection.sendall(request + b"x" * 60_000)
        wait_until(lambda: gateway.upstream_stats()["started"] >= 400, PATIENCE, "all of them wait")
        assert memory.growth < 400 * 40 * 1024
        assert is_served(gateway)


def test_a_flood_of_tiny_strings_takes_no_more_than_its_share(folder: Path) -> None:
    opening = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "hi"}]}).encode()[:-1]
    for filler in (b'"",', b'"a",'):
        strings = filler * ((BODY - 1024) // len(filler))
        body = opening + b',"extra":[' + strings + b'""]}'
        with local_gateway(folder / str(len(filler)), settings=LIMITS) as gateway:
            memory = Memory.of(gateway)
            refused = send(gateway.address, chat_request(body, KEYS["acme"]))
            assert (status_of(refused), error_of(refused)["code"]) == (400, "too_many_strings")
            assert_bounded(gateway, memory)


def logprobs_answer(content: str, size: int) -> bytes:
    """An answer with `top_logprobs`, of about `size` bytes."""
    likely = {"token": " word", "logprob": -0.0001234, "bytes": [32, 119, 111, 114, 100]}
    token = json.dumps({**likely, "top_logprobs": [likely] * 20})
    tokens = ",".join([token] * (size // len(token)))
    message = json.dumps({"role": "assistant", "content": content})
    return (
        f'{{"object":"chat.completion","choices":[{{"index":0,"message":{message},'
        f'"logprobs":{{"content":[{tokens}]}},"finish_reason":"stop"}}]}}'
    ).encode()


@dataclass
class HoldingUpstream:
    """An upstream that answers short prompts immediately, and holds back the last byte of other answers."""

    large: bytes
    listener: socket.socket
    released: threading.Event = field(default_factory=threading.Event)
    held: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection: socket.socket) -> None:
        with connection:
            try:
                while (request := _one_request(connection)) is not None:
                    self._answer(connection, request)
            except OSError:
                return

    def _answer(self, connection: socket.socket, request: bytes) -> None:
        if b"logprobs" not in request:
            connection.sendall(answer(b'{"choices":[]}'))
            return
        whole = answer(self.large)
        try:
            connection.sendall(whole[:-1])
        finally:
            with self._lock:
                self.held += 1
        self.released.wait(PATIENCE)
        connection.sendall(whole[-1:])


def _one_request(connection: socket.socket) -> bytes | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return None
        data += piece
    front, _, rest = data.partition(b"\r\n\r\n")
    length = int(front.lower().split(b"content-length: ", 1)[1].split(b"\r\n", 1)[0])
    while len(rest) < length:
        rest += connection.recv(65536) or closed()
    return rest


@contextmanager
def holding_upstream(large: bytes) -> Iterator[HoldingUpstream]:
    with socket.create_server(("127.0.0.1", 0), backlog=200) as listener:
        upstream = HoldingUpstream(large, listener)
        threading.Thread(target=upstream.serve, daemon=True).start()
        try:
            yield upstream
        finally:
            upstream.released.set()
            listener.shutdown(socket.SHUT_RDWR)


def inspected(upstream: HoldingUpstream) -> dict[str, Any]:
    rule = {
        "id": "aurora",
        "target": "Response",
        "action": "Redact",
        "score": 1,
        "reason": "secret",
        "literals": ["aurora"],
    }
    return {
        **LIMITS,
        "providers": [{"name": "mock", "type": "OpenAI", "baseURL": upstream.url}],
        "policy": {"mode": "Enforce", "budgetMilliseconds": 1000, "rules": [rule]},
    }


def in_parallel(calls: int, call: Callable[[], bytes]) -> tuple[list[threading.Thread], list[bytes]]:
    answers: list[bytes] = []
    threads = [threading.Thread(target=lambda: answers.append(call()), daemon=True) for _ in range(calls)]
    for thread in threads:
        thread.start()
    return threads, answers


def test_answers_that_are_held_for_the_rules_count_and_what_has_no_room_is_refused(folder: Path) -> None:
    large = logprobs_answer("an aurora", 8 * MEBIBYTE)
    question = json.dumps({"model": MODEL, "messages": [], "logprobs": True, "top_logprobs": 20}).encode()
    with (
        holding_upstream(large) as upstream,
        local_gateway(folder, settings=inspected(upstream)) as gateway,
    ):
        memory = Memory.of(gateway)
        threads, answers = in_parallel(50, lambda: send(gateway.address, chat_request(question, KEYS["acme"])))
        wait_until(lambda: upstream.held == 50, PATIENCE, "every answer is held or refused")
        assert memory.highest < BUDGET + SLACK
        assert is_served(gateway)
        upstream.released.set()
        for thread in threads:
            thread.join(PATIENCE)
        statuses = [status_of(told) for told in answers]
        assert set(statuses) == {200, 503}
        assert statuses.count(200) >= 4
        for told in answers:
            if status_of(told) == 503:
                assert error_of(told)["code"] == "overloaded"
            else:
                assert b"[redacted:aurora]" in told
                assert b"logprob" not in told.replace(b'"logprobs":null', b"")
        assert_bounded(gateway, memory)
        ends = [record for record in gateway.records() if record["kind"] == "completion"]
    assert sorted(record["status"] for record in ends if record["status"] != 200) == [503] * statuses.count(503)
