"""The succession of logs: in a running worker, after a kill, and on a volume that was set back."""

from __future__ import annotations

import shutil
import signal
import threading
from functools import partial
from pathlib import Path

import pytest
from proofgate import _core

from e2e.evidence import exchanges_by_their_ends
from e2e.local_gateway import LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.test_endings import load_until_cut

# The minimum that is allowed: about two thousand records, so that a log ends every few seconds of load.
OFTEN = {"rotation": {"bytes": 1 << 20}}


def logs(gateway: LocalGateway) -> list[str]:
    return sorted(path.name for path in (gateway.ledger / "0").iterdir() if path.is_dir())


def several(gateway: LocalGateway, count: int) -> bool:
    return len(logs(gateway)) >= count


def clients(gateway: LocalGateway, completed: list[str]) -> list[threading.Thread]:
    started = [
        threading.Thread(target=load_until_cut, args=(gateway.address, completed, number % 2 == 1))
        for number in range(8)
    ]
    for client in started:
        client.start()
    return started


def verdict(gateway: LocalGateway) -> tuple[int, str]:
    code, report = _core.fsck(str(gateway.ledger), gateway.verifying_key)
    return code, report


def test_logs_change_under_load_and_every_exchange_keeps_its_one_end(tmp_path: Path) -> None:
    with local_gateway(tmp_path, settings={"ledger": OFTEN}) as gateway:
        completed: list[str] = []
        load = clients(gateway, completed)
        wait_until(partial(several, gateway, 4), PATIENCE, "four logs have begun")
        assert gateway.worker is not None
        assert gateway.worker.stop() == 0
        for client in load:
            client.join(PATIENCE)
        records = gateway.records()
        assert set(exchanges_by_their_ends(records).values()) == {1}
        ended = {record["id"] for record in records if record["kind"] == "completion"}
        assert set(completed) <= ended
        seals = {record["log"]: record for record in records if record["kind"] == "seal"}
        told = {record["incarnation"]: record for record in records if record["kind"] == "takeover"}
        first, *_ = logs(gateway)
        assert seals[first]["successor"] == logs(gateway)[1]
        assert told[first]["size"] == seals[first]["records"] + 1
        code, report = verdict(gateway)
        assert code == 0, report


def test_a_worker_that_ends_right_after_a_change_of_logs_says_how_the_former_one_ended(tmp_path: Path) -> None:
    with local_gateway(tmp_path, settings={"ledger": OFTEN}) as gateway:
        first = gateway.status()["incarnation"]
        load = clients(gateway, [])
        wait_until(lambda: gateway.status()["incarnation"] != first, PATIENCE, "the next log is in service")
        assert gateway.worker is not None
        assert gateway.worker.stop() == 0
        for client in load:
            client.join(PATIENCE)
        told = [record["incarnation"] for record in gateway.records() if record["kind"] == "takeover"]
        assert told == [log for log in logs(gateway) if log in told] and first in told
        code, report = verdict(gateway)
        assert code == 0, report


def test_a_worker_killed_between_two_logs_loses_nothing(tmp_path: Path) -> None:
    with local_gateway(tmp_path, settings={"ledger": OFTEN}) as gateway:
        for life in range(1, 4):
            completed: list[str] = []
            load = clients(gateway, completed)
            wait_until(partial(several, gateway, 2 * life), PATIENCE, "one more log has begun")
            assert gateway.worker is not None
            gateway.worker.stop(signal.SIGKILL)
            for client in load:
                client.join(PATIENCE)
            ended = {record["id"] for record in gateway.records() if record["kind"] == "completion"}
            assert set(completed) <= ended
            gateway.start_worker()
        assert gateway.worker is not None
        assert gateway.worker.stop() == 0
        assert set(exchanges_by_their_ends(gateway.records()).values()) == {1}
        code, report = verdict(gateway)
        assert code == 0, report


def test_a_log_is_signed_before_the_worker_is_ready(tmp_path: Path) -> None:
    with local_gateway(tmp_path, settings={"ledger": {"checkpointIntervalSeconds": 3600}}) as gateway:
        note = gateway.admin_text("/checkpoint")
        assert note.splitlines()[:2] == [gateway.origin, "1"]


@pytest.mark.parametrize("what", ["set back", "gone"])
def test_a_worker_does_not_start_behind_what_is_held_outside(tmp_path: Path, what: str) -> None:
    held = tmp_path / "held"
    held.mkdir()
    settings = {"ledger": {"heldCheckpoints": {"directory": str(held)}}}
    with local_gateway(tmp_path, settings=settings) as gateway:
        earlier = tmp_path / "earlier"
        shutil.copytree(gateway.ledger, earlier)
        completed: list[str] = []
        load = clients(gateway, completed)
        wait_until(lambda: len(completed) > 20, PATIENCE, "something was recorded")
        assert gateway.worker is not None
        assert gateway.worker.stop() == 0
        for client in load:
            client.join(PATIENCE)
        assert (held / "0").read_text().startswith(gateway.origin)
        signed = sorted(gateway.ledger.glob("0/*/*checkpoint"))
        shutil.rmtree(gateway.ledger)
        if what == "set back":
            shutil.copytree(earlier, gateway.ledger)
        else:
            gateway.ledger.mkdir()
        before = {path: path.read_bytes() for path in gateway.ledger.rglob("*checkpoint")}
        with pytest.raises(RuntimeError, match="the ledger is behind the checkpoint held outside"):
            gateway.start_worker(attempts=1)
        assert {path: path.read_bytes() for path in gateway.ledger.rglob("*checkpoint")} == before
        assert signed


def test_a_worker_says_that_the_logs_before_the_newest_are_gone(tmp_path: Path) -> None:
    with local_gateway(tmp_path) as gateway:
        assert gateway.worker is not None
        assert gateway.worker.stop() == 0
        gateway.start_worker()
        assert "proofgate_ledger_predecessor_missing 0" in gateway.admin_text("/metrics")
        assert gateway.worker.stop() == 0
        first, second = logs(gateway)
        shutil.rmtree(gateway.ledger / "0" / first)
        gateway.start_worker()
        gateway.worker.wait_for_line(f"the log of {second} continues the log of {first}, which is missing")
        assert "proofgate_ledger_predecessor_missing 1" in gateway.admin_text("/metrics")
        assert gateway.worker.stop() == 0
        opened = {record["log"]: record for record in gateway.records() if record["kind"] == "open"}
        third = logs(gateway)[-1]
        assert opened[third]["predecessor"]["missing"] == first
        assert "missing" not in opened[second]["predecessor"]
        code, report = verdict(gateway)
        assert code == 10 and f"its predecessor {first} is missing" in report
