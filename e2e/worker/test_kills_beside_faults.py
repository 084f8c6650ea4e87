"""A worker is killed repeatedly while its clock moves, its volume is full and its disk fails."""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
from proofgate import _core

from e2e.auditing import AUDITOR, Audit, following
from e2e.evidence import exchanges_by_their_ends
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.shim import BROKEN, FULL, Calls, Shim

#: The number of kills; `make test-kills` uses 200. By default, there is one for each fault.
KILLS = int(os.environ.get("PROOFGATE_KILLS", "6"))
_CLIENTS = 8
_HOURS = 3600


class Load:
    """Clients that send one request after another until the worker has ended."""

    def __init__(self, address: str) -> None:
        self.completed: list[str] = []
        self.refused = 0
        asks = [partial(self._ask, address, number % 2 == 1) for number in range(_CLIENTS)]
        self._clients = [threading.Thread(target=ask) for ask in asks]
        for client in self._clients:
            client.start()

    def _ask(self, address: str, streams: bool) -> None:
        headers = {"Authorization": f"Bearer {KEYS['acme']}"}
        body = {"model": MODEL, "messages": [{"role": "user", "content": "mock:tokens=20"}], "stream": streams}
        with httpx.Client(base_url=f"http://{address}", headers=headers, timeout=PATIENCE) as client:
            while True:
                try:
                    response = client.post("/v1/chat/completions", json=body)
                except httpx.HTTPError:
                    return
                if response.status_code != 200:
                    self.refused += 1
                elif not streams or response.text.endswith("[DONE]\n\n"):
                    self.completed.append(response.headers["x-request-id"])

    def ended(self) -> bool:
        """Whether all clients have ended, because the worker has."""
        return not any(client.is_alive() for client in self._clients)

    def goes_on(self) -> None:
        """Waits until 50 more answers are complete, or the worker has ended."""
        goal = len(self.completed) + 50
        wait_until(lambda: len(self.completed) >= goal or self.ended(), PATIENCE, "50 more answers are complete")

    def is_refused(self) -> None:
        """Waits until a request is refused, or the worker has ended."""
        before = self.refused
        wait_until(lambda: self.refused > before or self.ended(), PATIENCE, "a request is refused")

    def end(self) -> None:
        """Waits for the clients after the end of the worker."""
        for client in self._clients:
            client.join(PATIENCE)


Fault = Callable[[Shim, Load], None]


def nothing(_shim: Shim, load: Load) -> None:
    load.goes_on()


def clock_moves(hours: int) -> Fault:
    def move(shim: Shim, load: Load) -> None:
        shim.move_clock(hours * _HOURS)
        load.goes_on()

    return move


def volume_is_full(shim: Shim, load: Load) -> None:
    shim.fail(Calls.WRITING, FULL, "/ledger/")
    load.is_refused()
    shim.heal()
    load.goes_on()


def disk_fails(calls: Calls) -> Fault:
    def fail(shim: Shim, load: Load) -> None:
        shim.fail(calls, BROKEN, "/ledger/")
        load.is_refused()
        shim.heal()

    return fail


FAULTS: tuple[Fault, ...] = (
    nothing,
    clock_moves(2),
    volume_is_full,
    clock_moves(-2),
    disk_fails(Calls.WRITING),
    disk_fails(Calls.SYNCING),
)


@pytest.fixture
def shim(tmp_path: Path) -> Shim:
    return Shim(tmp_path)


@contextmanager
def audited(gateway: LocalGateway) -> Iterator[Audit]:
    """An auditor that follows the gateway's ledger during the block."""
    secret, _ = _core.generate_key(AUDITOR)
    (gateway.folder / "auditor-key").touch(mode=0o600)
    (gateway.folder / "auditor-key").write_text(secret)
    audit = Audit(gateway.folder, gateway.verifying_key)
    with following(audit, "--new-aggregate"):
        yield audit


def kill_beside(fault: Fault, gateway: LocalGateway, shim: Shim) -> list[str]:
    """Kills a worker under load after a fault, and starts another one; returns the ids of the complete answers."""
    assert gateway.worker is not None
    load = Load(gateway.address)
    load.goes_on()
    fault(shim, load)
    shim.heal()
    gateway.worker.stop(signal.SIGKILL)
    load.end()
    gateway.start_worker(shim.environment)
    return load.completed


def each_answer_has_one_admission_and_one_end(records: list[dict[str, Any]], answered: list[str]) -> None:
    assert set(exchanges_by_their_ends(records).values()) <= {1}
    for kind in ("admission", "completion"):
        counts = Counter(record["id"] for record in records if record["kind"] == kind)
        assert [request for request in answered if counts[request] != 1] == []


def test_kills_beside_moved_clocks_a_full_volume_and_a_failing_disk_lose_no_answer_and_alarm_nobody(
    tmp_path: Path, shim: Shim
) -> None:
    answered: list[str] = []
    with local_gateway(tmp_path) as gateway:
        assert gateway.worker is not None
        gateway.worker.stop()
        gateway.start_worker(shim.environment)
        with audited(gateway) as audit:
            for number in range(KILLS):
                answered += kill_beside(FAULTS[number % len(FAULTS)], gateway, shim)
        assert gateway.worker.stop() == 0
        each_answer_has_one_admission_and_one_end(gateway.records(), answered)
        code, report = _core.fsck(str(gateway.ledger), gateway.verifying_key)
        assert code == 0, report
        assert audit.look() == (0, []), "an auditor that ran all the time has found nothing"
