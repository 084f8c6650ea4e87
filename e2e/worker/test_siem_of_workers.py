"""An auditor that reads workers with separate folders over HTTP sends the exchanges of all workers to a SIEM."""

from __future__ import annotations

import json
import signal

from e2e.auditing import ask_and_wait, fetch, following
from e2e.programs import PATIENCE, wait_until
from e2e.worker.otlp_receiver import Receiver, receiver
from e2e.worker.test_served_workers import Fleet, fleet
from e2e.worker.test_siem import ended

__all__ = ["fleet"]


def options(fleet: Fleet, collector: Receiver) -> list[str]:
    sink = collector.url.replace("http://", "otlp+http://")
    return ["--replica", str(fleet.audit.folder / "replica"), "--siem", sink, "--siem-patience", "0.5"]


def sent(collector: Receiver) -> set[str]:
    return {told["proofgate.request.id"] for told in collector.logs}


def findings(url: str) -> list[str]:
    return [one["code"] for one in json.loads(fetch(f"{url}/findings"))["findings"]]


def test_every_exchange_of_every_worker_comes_at_least_once_over_a_kill_and_silence(fleet: Fleet) -> None:
    with receiver() as collector:
        for worker in fleet.workers:
            ask_and_wait(worker, 2)
        with following(fleet.audit, "--new-aggregate", *options(fleet, collector)) as (program, _):
            wait_until(lambda: len(sent(collector)) == 4, PATIENCE, "what was there is sent")
            collector.status = 503
            for worker in fleet.workers:
                ask_and_wait(worker, 1)
            program.stop(signal.SIGKILL)
        taken = len(collector.logs)
        with following(fleet.audit, *options(fleet, collector)) as (_, url):
            wait_until(lambda: findings(url) == ["siem_lags"], PATIENCE, "it is reported that nothing is removed")
            collector.logs = collector.logs[:taken]
            collector.status = 200
            wait_until(lambda: len(sent(collector)) == 6, PATIENCE, "the rest is sent")
            wait_until(lambda: findings(url) == [], PATIENCE, "it is over")
        assert {told["proofgate.record.origin"] for told in collector.logs} == {one.origin for one in fleet.workers}
        assert sent(collector) == set().union(*(ended(worker.ledger, "*") for worker in fleet.workers))


def test_a_siem_of_workers_needs_a_folder_for_copies(fleet: Fleet) -> None:
    with receiver() as collector:
        done = fleet.audit.run(*fleet.audit.arguments, *options(fleet, collector)[2:])
    assert done.returncode == 2 and "--siem needs --ledger, or --replica" in done.stderr
