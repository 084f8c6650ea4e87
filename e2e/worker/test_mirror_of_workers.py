"""An auditor that reads workers with separate folders over HTTP, and mirrors its copies of their ledgers."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
from proofgate import _core

from e2e.auditing import ask_and_wait, following
from e2e.commands import proofgate
from e2e.local_gateway import LocalGateway
from e2e.object_store import KEYS, object_store
from e2e.programs import PATIENCE, Program, wait_until
from e2e.worker.test_index_of_workers import RETENTION_KEY_NAME, retention
from e2e.worker.test_mirror import found, metric
from e2e.worker.test_served_workers import Fleet, fleet

__all__ = ["fleet"]


@contextmanager
def mirroring(fleet: Fleet, *more: str) -> Iterator[tuple[Program, str]]:
    """The auditor of the workers with copies and a mirror in a directory: its program and URL."""
    folder = fleet.audit.folder
    (folder / "mirror").mkdir(exist_ok=True)
    with following(
        fleet.audit, "--replica", str(folder / "replica"), "--mirror", str(folder / "mirror"), *more
    ) as started:
        yield started


def restart(fleet: Fleet, shard: int, how: signal.Signals = signal.SIGTERM) -> str:
    """Ends a worker's log and starts the next one; returns the path of the ended log in a ledger."""
    worker = fleet.workers[shard]
    ended = place(worker)
    assert worker.worker is not None
    worker.worker.stop(how)
    worker.start_worker(shard=shard)
    fleet.list(0, 1)
    return ended


def place(worker: LocalGateway) -> str:
    return "/".join(worker.origin.split("/")[-2:])


def mirrored(fleet: Fleet) -> set[str]:
    done = (fleet.audit.folder / "mirror" / "ledger").glob("*/*/checkpoint")
    return {"/".join(path.parent.parts[-2:]) for path in done}


def has(fleet: Fleet, *places: str) -> bool:
    return set(places) <= mirrored(fleet)


def verified(fleet: Fleet, mirror: str, to: Path) -> set[str]:
    """The logs that are fetched from a mirror; checks that all verify."""
    fetched = proofgate("audit", "fetch", mirror, str(to))
    assert fetched.returncode == 0, fetched.stdout + fetched.stderr
    checked = proofgate("ledger", "fsck", str(to), "--mirror", "--key", fleet.audit.key)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return {"/".join(path.parts[-2:]) for path in to.glob("[0-9]*/*")}


def lag(url: str) -> float:
    """The longest lag of all mirrors, in seconds."""
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return max(float(line.split()[-1]) for line in lines if line.startswith("proofgate_auditor_mirror_lag_seconds{"))


def is_told(url: str, place: str) -> bool:
    heads = httpx.get(f"{url}/heads").json()["shards"]
    return any(head["origin"].endswith(place) and head["ended"] for head in heads)


def codes(url: str) -> list[str]:
    return [one["code"] for one in found(url)]


def test_logs_of_workers_with_a_folder_each_are_mirrored_and_verify_when_they_are_brought_back(
    fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    one, other = fleet.workers
    for worker in fleet.workers:
        ask_and_wait(worker, 2)
    with object_store(tmp_path / "store") as store:
        store.make("evidence")
        options = {"lock": "compliance", "days": "1", "endpoint": store.endpoint}
        bucket = f"s3://evidence/llm?{urlencode(options)}"
        with mirroring(fleet, "--mirror", bucket, "--new-aggregate") as (program, url):
            wait_until(lambda: fleet.followed(url), PATIENCE, "both workers are followed")
            ended = [restart(fleet, 0)]
            wait_until(lambda: has(fleet, *ended), PATIENCE, "the log of the first worker is mirrored")
            ask_and_wait(one, 3)
            ended.append(restart(fleet, 0, signal.SIGKILL))
            # The auditor is killed while it mirrors.
            program.stop(signal.SIGKILL)
        with mirroring(fleet, "--mirror", bucket) as (_, url):
            wait_until(lambda: fleet.followed(url), PATIENCE, "both workers are followed again")
            # The worker is scaled away and back. Its last records may have been copied before, or only now.
            ask_and_wait(other, 1)
            ended.append(place(other))
            fleet.list(0)
            assert other.worker is not None and other.worker.stop() == 0
            other.start_worker(shard=1)
            fleet.list(0, 1)
            wait_until(lambda: has(fleet, *ended), PATIENCE, "all ended logs are mirrored")
            wait_until(lambda: lag(url) == 0, PATIENCE, "nothing waits for either mirror")
            assert codes(url) == []
        assert verified(fleet, str(fleet.audit.folder / "mirror"), tmp_path / "of-directory") == set(ended)
        assert verified(fleet, bucket, tmp_path / "of-bucket") == set(ended)


def test_a_log_whose_worker_was_scaled_away_before_it_was_copied_is_mirrored_when_it_returns(
    fleet: Fleet, tmp_path: Path
) -> None:
    for worker in fleet.workers:
        ask_and_wait(worker, 1)
    other = fleet.workers[1]
    # Without copies, everything is accepted and nothing is copied.
    with following(fleet.audit, "--new-aggregate") as (program, url):
        wait_until(lambda: fleet.followed(url), PATIENCE, "both workers are followed")
        away = place(other)
        fleet.list(0)
        assert other.worker is not None and other.worker.stop() == 0
        ended = restart(fleet, 0)
        fleet.list(0)
        wait_until(lambda: metric(url, "worker_up") == 1, PATIENCE, "the first worker is read")
        wait_until(partial(is_told, url, away), PATIENCE, "the end of the second worker's log is accepted")
        assert program.stop() == 0
    with mirroring(fleet, "--mirror-patience", "0.5") as (_, url):
        wait_until(lambda: has(fleet, ended), PATIENCE, "the log of the first worker is mirrored")
        wait_until(lambda: codes(url) == ["mirror_lags"], PATIENCE, "the other one is waited for")
        assert f"{away} waits for its copy" in found(url)[0]["message"]
        gone = "the worker of shard 1 was removed by a scale-down"
        wait_until(lambda: gone in found(url)[0]["message"], PATIENCE, "the finding has the reason")
        other.start_worker(shard=1)
        fleet.list(0, 1)
        wait_until(lambda: has(fleet, away), PATIENCE, "the log is mirrored")
        wait_until(lambda: codes(url) == [], PATIENCE, "nothing is found any more")
    assert verified(fleet, str(fleet.audit.folder / "mirror"), tmp_path / "back") == {ended, away}


def test_what_stays_of_a_log_that_was_removed_by_right_at_its_worker_is_mirrored_beside_it(fleet: Fleet) -> None:
    folder, one = fleet.audit.folder, fleet.workers[0]
    signing, verifying = _core.generate_key(RETENTION_KEY_NAME)
    (folder / "retention-key").write_text(signing)
    (folder / "keeping-key").write_text(verifying)
    ask_and_wait(one, 2)
    with mirroring(fleet, "--keeping-key", str(folder / "keeping-key"), "--new-aggregate") as (_, url):
        wait_until(lambda: fleet.followed(url), PATIENCE, "both workers are followed")
        old, *_ = ended = [restart(fleet, 0) for _ in range(2)]
        ask_and_wait(one, 1)
        wait_until(lambda: has(fleet, *ended), PATIENCE, "the ended logs are mirrored")
        removed = json.loads(retention(fleet, one))
        assert removed["remove"] == 1, [log["reasons"] for log in removed["logs"]]
        tombstone = folder / "mirror" / "removed" / old / "tombstone"
        wait_until(tombstone.exists, PATIENCE, "what stays of the log is mirrored")
        assert list((folder / "mirror" / "ledger" / old).glob("*.seg"))
        assert codes(url) == []
