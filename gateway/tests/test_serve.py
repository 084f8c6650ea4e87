"""A worker process from start to exit, with real processes and signals."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest
from conftest import HTTP, ConfigDirectory, eventually
from signing import VKEY
from worker_process import AUTHORIZED, Worker, running


@pytest.fixture
def worker(config_directory: ConfigDirectory) -> Iterator[Worker]:
    with running(config_directory, "--shard", "4") as process:
        yield process


def test_one_line_announces_a_ready_worker(worker: Worker) -> None:
    assert re.fullmatch(
        r"proofgate ready: traffic=127\.0\.0\.1:\d+ admin=127\.0\.0\.1:\d+ "
        rf"origin=proofgate\.dev/ns/demo/4/[0-9A-Z]{{26}} verifying-key={re.escape(VKEY)}\n",
        worker.announcement,
    )
    assert worker.readiness() == (200, "ok")


def test_the_shard_comes_from_the_environment(config_directory: ConfigDirectory) -> None:
    with running(config_directory, env={"PROOFGATE_SHARD": "7"}) as worker:
        assert "origin=proofgate.dev/ns/demo/7/" in worker.announcement


def test_python_yields_to_the_data_plane(worker: Worker) -> None:
    assert worker.nice(worker.process.pid) == 19
    assert worker.nice(worker.thread("proofgate-data")) == os.getpriority(os.PRIO_PROCESS, 0)


def test_threads_that_wait_for_proofs_yield_as_well(worker: Worker) -> None:
    assert HTTP.get(f"{worker.admin}/proof/nobody", headers=AUTHORIZED).status_code == 404
    python = [number for number, name in worker.threads() if not name.startswith("proofgate-")]
    assert len(python) >= 2
    # This includes short-lived threads of the core; their niceness is lower, but they yield too.
    assert {worker.nice(thread) for thread in python} <= {5, 19}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_seals_and_exits_cleanly(worker: Worker, number: signal.Signals) -> None:
    worker.signal(number)
    assert worker.exit_code() == 0


def test_the_admin_port_answers_while_exchanges_finish(worker: Worker) -> None:
    (worker.ledger / "in-flight").touch()
    worker.signal()
    assert eventually(lambda: worker.readiness() == (503, "draining"))
    assert HTTP.get(f"{worker.admin}/healthz").status_code == 200
    assert HTTP.get(f"{worker.admin}/proof/nobody", headers=AUTHORIZED).status_code == 404
    (worker.ledger / "in-flight").unlink()
    assert worker.exit_code() == 0


def test_a_drain_deadline_that_passes_is_an_error(config_directory: ConfigDirectory) -> None:
    config_directory.replace("drainSeconds: 20", "drainSeconds: 0.1")
    with running(config_directory, env={"PROOFGATE_TEST_SETTLE_SECONDS": "0.1"}) as worker:
        (worker.ledger / "in-flight").touch()
        worker.signal()
        assert worker.exit_code() == 1


def test_a_second_signal_does_not_wait_for_the_deadline(worker: Worker) -> None:
    (worker.ledger / "in-flight").touch()
    worker.signal()
    assert eventually(lambda: worker.readiness() == (503, "draining"))
    worker.signal()
    assert worker.exit_code() == 1


def test_a_drain_over_http_leaves_the_sealed_worker_up(worker: Worker) -> None:
    response = HTTP.post(f"{worker.admin}/drain", headers=AUTHORIZED)
    assert response.status_code == 202
    assert worker.readiness() == (503, "draining")
    assert worker.process.poll() is None
    worker.signal()
    assert worker.exit_code() == 0


def test_a_worker_that_lost_a_thread_ends(worker: Worker) -> None:
    (worker.ledger / "failed").touch()
    assert worker.exit_code() == 1


@pytest.mark.parametrize("reason", ["failed", "ledger_stopped"])
def test_a_log_that_can_never_be_sealed_is_not_waited_for(worker: Worker, reason: str) -> None:
    (worker.ledger / "in-flight").touch()
    worker.signal()
    assert eventually(lambda: worker.readiness() == (503, "draining"))
    (worker.ledger / "unready").write_text(reason)
    assert worker.exit_code() == 1


def test_a_worker_that_cannot_start_says_why(config_directory: ConfigDirectory) -> None:
    (config_directory.ledger / "refuse-start").write_text("the predecessor's log cannot be read")
    with running(config_directory) as worker:
        assert worker.exit_code() == 1
        assert worker.announcement == ""
        _, error = worker.process.communicate()
        assert error == "proofgate: the predecessor's log cannot be read [ledger_unreadable]\n"


def test_a_configuration_that_the_core_refuses_is_wrong_usage(config_directory: ConfigDirectory) -> None:
    (config_directory.ledger / "refuse-config").write_text("there are too many rules")
    with running(config_directory) as worker:
        assert worker.exit_code() == 2
        _, error = worker.process.communicate()
        assert error == "proofgate: there are too many rules [config]\n"


def test_an_occupied_admin_port_ends_the_start(config_directory: ConfigDirectory, worker: Worker) -> None:
    occupied = worker.admin.removeprefix("http://")
    config_directory.replace("admin:\n  listen: 127.0.0.1:0", f"admin:\n  listen: {occupied}")
    with running(config_directory) as second:
        assert second.exit_code() == 1
        _, error = second.process.communicate()
        assert error == f"proofgate: {occupied} cannot be bound: Address already in use [listen]\n"
