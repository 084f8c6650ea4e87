"""An auditor that reads workers with separate folders over HTTP, and indexes their ledgers."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from proofgate import _core

from e2e.auditing import ask_and_wait, following
from e2e.commands import proofgate
from e2e.local_gateway import LocalGateway
from e2e.programs import PATIENCE, Program, wait_until
from e2e.worker.test_served_workers import Fleet, fleet

__all__ = ["fleet"]
KEY = "officer-reader-key-0123456789"
RETENTION_KEY_NAME = "proofgate.dev/local/keeping"


@contextmanager
def indexing(fleet: Fleet, *more: str) -> Iterator[tuple[Program, str]]:
    """The auditor of the workers with an index and one reader: its program and URL."""
    folder = fleet.audit.folder
    if not (folder / "readers").exists():
        (folder / "readers").write_text(json.dumps({_core.hash_api_key(KEY): {"name": "officer", "all": True}}))
        signing, verifying = _core.generate_key(RETENTION_KEY_NAME)
        (folder / "retention-key").write_text(signing)
        (folder / "keeping-key").write_text(verifying)
    options = ["--index", str(folder / "index"), "--replica", str(folder / "replica")]
    options += ["--readers", str(folder / "readers"), "--keeping-key", str(folder / "keeping-key")]
    with following(fleet.audit, *options, *more) as started:
        yield started


def answer(url: str, path: str) -> httpx.Response:
    return httpx.get(f"{url}/v1/{path}", headers={"Authorization": f"Bearer {KEY}"}, timeout=PATIENCE)


def listed(url: str) -> list[dict[str, Any]]:
    found = answer(url, "exchanges")
    # There is no index yet while it is built.
    rows: list[dict[str, Any]] = found.json()["exchanges"] if found.status_code == 200 else []
    return rows


def lists(url: str, exchanges: int) -> bool:
    return len(listed(url)) == exchanges


def shards(fleet: Fleet) -> list[str]:
    return sorted(path.name for path in (fleet.audit.folder / "replica" / "ledger").iterdir() if path.name.isdigit())


def retention(fleet: Fleet, worker: LocalGateway) -> str:
    """Removes old logs in one worker's folder with the command; returns its output."""
    folder = fleet.audit.folder
    where = ["--state", str(folder / "holds"), "--ledger-key", worker.verifying_key]
    where += ["--signing-key", str(folder / "retention-key")]
    begun = proofgate("ledger", "hold", "begin", *where)
    assert begun.returncode == 0, begun.stderr
    options = ["--ledger", str(worker.ledger), "--older-than", "0d", "--author", "an officer", "--yes"]
    return proofgate("ledger", "prune", *where, *options, "--json").stdout


def test_exchanges_of_workers_with_a_folder_each_are_listed_and_proved(fleet: Fleet, tmp_path: Path) -> None:
    for worker in fleet.workers:
        ask_and_wait(worker, 2)
    with indexing(fleet, "--new-aggregate") as (program, url):
        wait_until(lambda: len(listed(url)) == 4, PATIENCE, "the exchanges of both workers are indexed")
        assert shards(fleet) == ["0", "1"]
        for row in listed(url):
            got = answer(url, f"exchanges/{row['id']}/receipt").raise_for_status()
            (tmp_path / "receipt.json").write_text(json.dumps(got.json()))
            checked = proofgate("verify", str(tmp_path / "receipt.json"), "--key", fleet.workers[0].verifying_key)
            assert checked.returncode == 0, checked.stdout + checked.stderr
        assert "\nproofgate_auditor_replica_lag_seconds 0.000\n" in httpx.get(f"{url}/metrics").text
        # The auditor is killed while it copies more.
        for worker in fleet.workers:
            ask_and_wait(worker, 3)
        program.stop(signal.SIGKILL)
    with indexing(fleet) as (_, url):
        wait_until(lambda: len(listed(url)) == 10, PATIENCE, "the index continues")
        assert httpx.get(f"{url}/findings").json()["findings"] == []
        assert answer(url, "budgets").json()["configuration"]["code"] == ""


def test_a_log_that_was_removed_by_right_at_its_worker_leaves_the_copies(fleet: Fleet) -> None:
    one = fleet.workers[0]
    ask_and_wait(one, 2)
    with indexing(fleet, "--new-aggregate") as (_, url):
        wait_until(lambda: len(listed(url)) == 2, PATIENCE, "the exchanges are indexed")
        [old] = listed(url)[:1]
        copied = fleet.audit.folder / "replica" / "ledger" / "0" / one.origin.split("/")[-1]
        assert list(copied.glob("*.seg"))
        # The two newest logs of a shard are never removed.
        for number in (3, 4):
            assert one.worker is not None and one.worker.stop() == 0
            one.start_worker(shard=0)
            fleet.list(0, 1)
            ask_and_wait(one, 1)
            wait_until(partial(lists, url, number), PATIENCE, "the new log is indexed")
        removed = json.loads(retention(fleet, one))
        assert removed["remove"] == 1, [log["reasons"] for log in removed["logs"]]
        wait_until(lambda: not list(copied.glob("*.seg")), PATIENCE, "the copy of the removed log goes")
        assert (copied / "tombstone").exists()
        gone = answer(url, f"exchanges/{old['id']}/receipt")
        assert (gone.status_code, gone.json()["error"]["code"]) == (410, "log_removed")


def test_an_index_of_workers_needs_a_folder_for_copies(fleet: Fleet) -> None:
    folder = fleet.audit.folder
    done: subprocess.CompletedProcess[str] = fleet.audit.run(*fleet.audit.arguments, "--index", str(folder / "index"))
    assert done.returncode == 2 and "--index needs --ledger, or --replica" in done.stderr
