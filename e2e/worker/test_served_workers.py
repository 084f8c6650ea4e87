"""Workers with separate ledger folders, and an auditor that reads them over their admin ports."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from proofgate import _core
from proofgate_operator.build import gateway_secrets

from e2e.auditing import AUDITOR, ask_and_wait, fetch, following, heads, signed
from e2e.local_gateway import LEDGER, LocalGateway, local_gateway
from e2e.loopback_server import refusing_address
from e2e.programs import PATIENCE, wait_until
from e2e.served import ServedAudit


@dataclass
class Fleet:
    """Two workers of one ledger with separate folders, and their auditor."""

    workers: list[LocalGateway]
    audit: ServedAudit

    def list(self, *shards: int) -> None:
        self.audit.list_workers({str(shard): self.workers[shard].admin for shard in shards})

    def followed(self, url: str) -> bool:
        """Whether the auditor has accepted all signed records."""
        known = heads(url)
        return all(known.get(worker.origin) == signed(worker) for worker in self.workers)


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    secret, public = _core.generate_key(LEDGER)
    audit = ServedAudit(tmp_path / "audit", public)
    audit.folder.mkdir()
    (audit.folder / "auditor-key").write_text(_core.generate_key(AUDITOR)[0])
    with ExitStack() as stack:
        workers = []
        for shard in range(2):
            folder = tmp_path / f"worker-{shard}"
            folder.mkdir()
            (folder / "signing-key").write_text(secret)
            worker = LocalGateway(folder)
            stack.callback(worker.stop)
            worker.start_upstream()
            worker.write_configuration()
            worker.start_worker(shard=shard)
            workers.append(worker)
        token = gateway_secrets.auditor_token(workers[0].admin_token)
        (audit.folder / "auditor-token").write_text(token)
        fleet = Fleet(workers, audit)
        fleet.list(0, 1)
        yield fleet


def codes(url: str) -> dict[str, str]:
    found: list[dict[str, Any]] = json.loads(fetch(f"{url}/findings"))["findings"]
    return {finding["code"]: finding["shard"] for finding in found}


def standing(url: str) -> dict[str, str]:
    return {head["shard"]: head["worker"] for head in json.loads(fetch(f"{url}/heads"))["shards"]}


def test_an_auditor_follows_workers_with_a_folder_each_and_names_what_is_done_to_one(fleet: Fleet) -> None:
    one, other = fleet.workers
    for worker in fleet.workers:
        ask_and_wait(worker, 2)
    with following(fleet.audit, "--new-aggregate") as (program, url):
        wait_until(lambda: fleet.followed(url), PATIENCE, "both workers' heads are accepted")
        assert standing(url) == {"0": "answers", "1": "answers"}
        ask_and_wait(one, 2)
        ask_and_wait(other, 2)
        wait_until(lambda: fleet.followed(url), PATIENCE, "the newer heads are accepted")
        published = int(fetch(f"{url}/checkpoint").split("\n")[1])
        assert published >= len(fleet.workers)
        # Scaled away: the worker leaves the list, seals its log, and ends. The auditor reads the seal first.
        fleet.list(0)
        assert other.worker is not None and other.worker.stop() == 0
        wait_until(lambda: standing(url) == {"0": "answers", "1": "gone"}, PATIENCE, "the second worker is gone")
        assert codes(url) == {}
        up = 'proofgate_auditor_worker_up{shard="0"} 1\n'
        assert up in fetch(f"{url}/metrics") and 'worker_up{shard="1"}' not in fetch(f"{url}/metrics")
        # The worker returns with its claim, and continues.
        other.start_worker(shard=1)
        fleet.list(0, 1)
        wait_until(lambda: fleet.followed(url), PATIENCE, "the second worker is followed again")
        assert codes(url) == {}
        # The worker's owner deletes its older log.
        shutil.rmtree(min(path for path in (other.ledger / "1").iterdir() if path.is_dir()))
        wait_until(lambda: codes(url) == {"log_missing": "1"}, PATIENCE, "the deletion is reported")
        assert program.stop() == 0
    text = program.log.read_text()
    assert (fleet.audit.folder / "auditor-token").read_text() not in text


def test_one_look_names_a_worker_that_does_not_answer_and_judges_the_others(folder: Path) -> None:
    with local_gateway(folder) as gateway, refusing_address() as dead:
        audit = ServedAudit(folder, gateway.verifying_key)
        (folder / "auditor-key").write_text(_core.generate_key(AUDITOR)[0])
        (folder / "auditor-token").write_text(gateway_secrets.auditor_token(gateway.admin_token))
        ask_and_wait(gateway, 1)
        audit.list_workers({"0": gateway.admin})
        assert audit.look("--new-aggregate") == (0, [])
        audit.list_workers({"0": gateway.admin, "1": dead})
        code, [found] = audit.look()
        assert (code, found["code"], found["shard"]) == (10, "worker_unreachable", "1")
        assert "cannot be reached" in found["message"]
        shutil.rmtree(gateway.ledger / "0" / gateway.origin.split("/")[-1])
        code, every = audit.look()
        assert (code, {of["code"] for of in every}) == (30, {"worker_unreachable", "shard_missing"})


def test_the_token_of_the_command_is_the_one_that_the_operator_makes(tmp_path: Path) -> None:
    (tmp_path / "admin-token").write_text("local-admin-token-0123456789abcdef\n")
    command = [sys.executable, "-m", "proofgate", "keys", "auditor-token", str(tmp_path / "admin-token")]
    made = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert made == gateway_secrets.auditor_token("local-admin-token-0123456789abcdef") + "\n"
