"""A copy of the volume, made file by file while a worker writes, is valid evidence, and a worker can continue it.

The order is that of docs/how-to/back-up-and-restore.md: in each incarnation, the checkpoint is copied before the files
that it covers, because segments, salts and tree only grow and the checkpoint is replaced as a whole.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI, OpenAIError

from e2e.backup import copy_volume
from e2e.commands import proofgate
from e2e.evidence import records
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until

OK, INCOMPLETE = 0, 10


def ask(gateway: LocalGateway, text: str = "hello") -> None:
    with OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": text}])


@contextmanager
def steady_requests(gateway: LocalGateway) -> Iterator[None]:
    """Sends requests continuously, so that the worker writes all the time."""
    stop = threading.Event()

    def keep_asking() -> None:
        with OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0) as client:
            while not stop.is_set():
                try:
                    client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "hello"}])
                except OpenAIError:
                    return

    thread = threading.Thread(target=keep_asking)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def fsck(directory: Path, key: str) -> tuple[int, dict[str, Any]]:
    done = proofgate("ledger", "fsck", directory, "--key", key, "--json")
    return done.returncode, json.loads(done.stdout)


def with_crash_behind_it(gateway: LocalGateway) -> None:
    """Creates a second incarnation on the volume; the first was never sealed."""
    assert gateway.worker
    ask(gateway)
    gateway.worker.process.kill()
    gateway.worker.process.wait()
    gateway.start_worker()
    ask(gateway)


def test_a_copy_taken_while_a_worker_writes_is_whole_up_to_its_newest_checkpoint(folder: Path) -> None:
    with local_gateway(folder) as gateway:
        with_crash_behind_it(gateway)
        with steady_requests(gateway):
            for number in range(5):
                before = gateway.status()["checkpointed"]
                wait_until(lambda: gateway.status()["checkpointed"] > before, PATIENCE, "a newer checkpoint")  # noqa: B023
                copy = folder / f"copy-{number}"
                copy_volume(gateway.ledger, copy)
                code, report = fsck(copy, gateway.verifying_key)
                # Records after the checkpoint were not signed yet, and this must be the only finding.
                assert code in (OK, INCOMPLETE), json.dumps(report, indent=2)
                found = [record for record in records(copy) if record["log"] == Path(gateway.origin).name]
                assert len(found) >= before


@pytest.mark.parametrize("durability", ["Written", "Synced"])
def test_fsck_beside_a_worker_under_load_never_speaks_of_damage(folder: Path, durability: str) -> None:
    with local_gateway(folder, settings={"ledger": {"durability": durability}}) as gateway, ExitStack() as clients:
        with_crash_behind_it(gateway)
        for _ in range(4):
            clients.enter_context(steady_requests(gateway))
        for _ in range(6):
            before = gateway.status()["checkpointed"]
            code, report = fsck(gateway.ledger, gateway.verifying_key)
            assert code in (OK, INCOMPLETE), json.dumps(report, indent=2)
            wait_until(lambda: gateway.status()["checkpointed"] > before, PATIENCE, "more of it is signed")  # noqa: B023


def test_every_exchange_in_a_copy_is_proved_to_an_outsider(folder: Path) -> None:
    with local_gateway(folder) as gateway:
        with_crash_behind_it(gateway)
        with steady_requests(gateway):
            wait_until(lambda: gateway.status()["checkpointed"] > 20, PATIENCE, "a checkpoint of 20 records")
            signed = gateway.status()["checkpointed"]
            copy_volume(gateway.ledger, folder / "copy")
        key = gateway.verifying_key
    current = Path(gateway.origin).name
    exchanges = [
        record["id"]
        for record in records(folder / "copy")
        if record["kind"] == "completion" and (record["log"] != current or record["seq"] < signed)
    ]
    assert len(exchanges) > 5
    for exchange in exchanges[:3] + exchanges[-3:]:
        out = folder / "proofs" / exchange
        assert proofgate("ledger", "prove", exchange, "--ledger", folder / "copy", "--out", out).returncode == 0
        for proof in out.glob("*.tlog-proof"):
            record = proof.with_suffix(".json")
            assert proofgate("verify", proof, "--record", record, "--key", key).returncode == 0


def test_a_worker_starts_on_a_restored_copy_and_continues_its_chain(folder: Path) -> None:
    with local_gateway(folder / "lost") as gateway:
        with_crash_behind_it(gateway)
        with steady_requests(gateway):
            wait_until(lambda: gateway.status()["checkpointed"] > 10, PATIENCE, "a checkpoint of 10 records")
            copy_volume(gateway.ledger, folder / "copy")
        last = Path(gateway.origin).name
    # The signing key is restored with the volume, from its separate backup.
    (folder / "restored").mkdir()
    shutil.copy2(folder / "lost" / "signing-key", folder / "restored")
    shutil.copytree(folder / "copy", folder / "restored" / "ledger")
    with local_gateway(folder / "restored") as restored:
        ask(restored)
        assert restored.worker
        assert restored.worker.stop() == 0
        assert restored.verifying_key == gateway.verifying_key
        (opened,) = (
            record
            for record in restored.records()
            if record["kind"] == "open" and record["log"] == Path(restored.origin).name
        )
        assert opened["predecessor"]["incarnation"] == last
        code, report = fsck(restored.ledger, restored.verifying_key)
        assert code in (OK, INCOMPLETE), json.dumps(report, indent=2)


def test_a_segment_that_was_copied_under_both_its_names_is_read_once(folder: Path) -> None:
    """The segment was still a prepared file when it was copied, and in use at the second listing of the directory."""
    with local_gateway(folder, settings={"ledger": {"segmentBytes": 1 << 20}}) as gateway:
        with steady_requests(gateway):
            segments = gateway.ledger / "0" / Path(gateway.origin).name
            wait_until(lambda: len(list(segments.glob("*.seg"))) > 1, PATIENCE, "a second segment")
        copy_volume(gateway.ledger, gateway.folder / "copy")
        copied = gateway.folder / "copy" / "0" / segments.name
        shutil.copy2(max(copied.glob("*.seg")), copied / f"{1:020d}.next")
        code, report = fsck(gateway.folder / "copy", gateway.verifying_key)
        assert code in (OK, INCOMPLETE), json.dumps(report, indent=2)
        numbers = [record["seq"] for record in records(gateway.folder / "copy")]
        assert numbers == list(range(len(numbers)))


# Salts are not in this list, because erasing a commitment erases its salt, and the log stays valid.
@pytest.mark.parametrize("entry", ["checkpoint", "*.seg"])
def test_a_copy_that_misses_a_file_is_not_taken_for_whole(folder: Path, entry: str) -> None:
    with local_gateway(folder) as gateway:
        ask(gateway)
        assert gateway.worker and gateway.worker.stop() == 0
        copy_volume(gateway.ledger, folder / "copy")
        assert fsck(folder / "copy", gateway.verifying_key)[0] == OK
        next((folder / "copy").glob(f"*/*/{entry}")).unlink()
        assert fsck(folder / "copy", gateway.verifying_key)[0] != OK
