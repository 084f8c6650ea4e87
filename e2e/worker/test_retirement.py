"""A worker that retires under load: no client notices, whether it ends immediately or later."""

from __future__ import annotations

import threading
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
from proofgate import _core

from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until

CLIENTS = 6


@dataclass
class Load:
    """The results of clients that send one request after another, half of them streams."""

    address: str
    ended: threading.Event = field(default_factory=threading.Event)
    answered: list[str] = field(default_factory=list)
    told_to_close: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    def send(self, stream: bool) -> None:
        body = {"model": MODEL, "messages": [{"role": "user", "content": "mock:tokens=20"}], "stream": stream}
        with httpx.Client(base_url=f"http://{self.address}", timeout=PATIENCE) as client:
            client.headers["Authorization"] = f"Bearer {KEYS['acme']}"
            while not self.ended.is_set():
                try:
                    answer = client.post("/v1/chat/completions", json=body)
                except httpx.HTTPError as error:
                    self.failed.append(repr(error))
                    continue
                whole = answer.text.endswith("[DONE]\n\n") if stream else "choices" in answer.text
                if answer.status_code != 200 or not whole:
                    self.failed.append(f"{answer.status_code} {answer.text[-200:]}")
                if answer.headers.get("connection") == "close":
                    self.told_to_close.append(answer.headers["x-request-id"])
                self.answered.append(answer.headers["x-request-id"])


@contextmanager
def under_load(gateway: LocalGateway) -> Iterator[Load]:
    load = Load(gateway.address)
    clients = [threading.Thread(target=load.send, args=(number % 2 == 1,)) for number in range(CLIENTS)]
    for client in clients:
        client.start()
    try:
        yield load
    finally:
        load.ended.set()
        for client in clients:
            client.join(PATIENCE)


def retirement(gateway: LocalGateway, method: str) -> None:
    gateway.admin_text("/retirement", method, gateway.admin_token)


def readiness(gateway: LocalGateway) -> tuple[int, str]:
    try:
        return 200, gateway.admin_text("/readyz")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def grown(seen: list[str], count: int) -> bool:
    return len(seen) >= count


def idle(gateway: LocalGateway) -> bool:
    status = gateway.status()
    return bool(status["connections"] == 0 and status["in_flight"] == 0)


# A client that uses its connection more often than this is asked to close in an answer, and loses no request.
PATIENT = {"timeouts": {"lameDuckSeconds": 60}}


def test_a_worker_retires_and_is_told_to_stay_under_load_without_a_failed_request(tmp_path: Path) -> None:
    with local_gateway(tmp_path, settings=PATIENT) as gateway:
        with under_load(gateway) as load:
            for _ in range(3):
                wait_until(partial(grown, load.answered, len(load.answered) + 50), PATIENCE, "50 more answers came")
                retirement(gateway, "PUT")
                assert readiness(gateway) == (503, "retiring\n")
                assert gateway.admin_text("/healthz") == "ok\n"
                told = len(load.told_to_close)
                wait_until(partial(grown, load.told_to_close, told + 50), PATIENCE, "50 answers said so")
                retirement(gateway, "DELETE")
                assert readiness(gateway) == (200, "ok\n")
        assert load.failed == []
        assert gateway.status()["retiring"] is False
        completed = {record["id"] for record in gateway.records() if record["kind"] == "completion"}
        assert set(load.answered) <= completed
        assert not [record for record in gateway.records() if record["kind"] == "seal"]


def test_a_retired_worker_that_nobody_uses_any_more_says_so_and_then_seals(tmp_path: Path) -> None:
    with local_gateway(tmp_path, settings=PATIENT) as gateway:
        with under_load(gateway) as load:
            wait_until(partial(grown, load.answered, 50), PATIENCE, "50 answers came")
            retirement(gateway, "PUT")
        assert load.failed == []
        wait_until(partial(idle, gateway), PATIENCE, "the last connection is closed")
        # No client is left.
        gateway.settings = {"timeouts": {"lameDuckSeconds": 0}}
        gateway.write_configuration()
        gateway.admin_text("/reload", "POST", gateway.admin_token)
        assert gateway.worker is not None
        assert gateway.worker.stop() == 0
        assert [record["kind"] for record in gateway.records()][-1] == "seal"
        code, report = _core.fsck(str(gateway.ledger), gateway.verifying_key)
        assert code == 0, report


def test_the_status_tells_the_cpus_that_a_worker_may_use(gateway: LocalGateway) -> None:
    status = gateway.status()
    assert status["effective_cpus"]
    assert status["retiring"] is False
