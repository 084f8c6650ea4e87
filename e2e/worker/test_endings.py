"""The intended and unintended ends of a worker, and its ledger afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
from openai import OpenAI
from proofgate import _core

from e2e import go_binaries
from e2e.evidence import exchanges_by_their_ends
from e2e.local_gateway import KEYS, LEDGER, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, error_of, send, status_of

# The number of kills of a worker under load; `make test-kills` uses 200.
KILLS = int(os.environ.get("PROOFGATE_KILLS", "3"))


def message(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def by_id(records: list[dict[str, Any]], kind: str) -> dict[str, dict[str, Any]]:
    return {record["id"]: record for record in records if record["kind"] == kind}


def fsck_is_clean(gateway: LocalGateway) -> bool:
    code, report = _core.fsck(str(gateway.ledger), gateway.verifying_key)
    assert code == 0, report
    return True


def load_until_cut(address: str, completed: list[str], streams: bool) -> None:
    """Sends requests one after another until the worker has ended; records the ids of complete answers."""
    headers = {"Authorization": f"Bearer {KEYS['acme']}"}
    with httpx.Client(base_url=f"http://{address}", headers=headers, timeout=PATIENCE) as client:
        body = {"model": MODEL, "messages": message("mock:tokens=20"), "stream": streams}
        while True:
            try:
                response = client.post("/v1/chat/completions", json=body)
            except httpx.HTTPError:
                return
            if response.status_code == 200 and (not streams or response.text.endswith("[DONE]\n\n")):
                completed.append(response.headers["x-request-id"])


def at_least(completed: list[str], count: int) -> bool:
    return len(completed) >= count


def test_a_worker_killed_under_load_loses_no_record_of_a_completed_answer(tmp_path: Path) -> None:
    answered: list[str] = []
    with local_gateway(tmp_path) as gateway:
        for _ in range(KILLS):
            completed: list[str] = []
            clients = [
                threading.Thread(target=load_until_cut, args=(gateway.address, completed, number % 2 == 1))
                for number in range(8)
            ]
            for client in clients:
                client.start()
            wait_until(partial(at_least, completed, 200), PATIENCE, "200 answers are complete")
            assert gateway.worker is not None
            gateway.worker.stop(signal.SIGKILL)
            for client in clients:
                client.join(PATIENCE)
            answered += completed
            gateway.start_worker()
        records = gateway.records()
        assert set(exchanges_by_their_ends(records).values()) == {1}
        for kind in ("admission", "completion"):
            counts = Counter(record["id"] for record in records if record["kind"] == kind)
            assert [request for request in answered if counts[request] != 1] == []
        assert fsck_is_clean(gateway)


def test_an_exchange_cut_by_a_crash_is_closed_by_the_next_incarnation(tmp_path: Path) -> None:
    with local_gateway(tmp_path) as gateway:
        client = OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"], max_retries=0)
        stream = client.chat.completions.create(model=MODEL, messages=message("mock:stall=2"), stream=True)
        request_id = stream.response.headers["x-request-id"]
        assert gateway.worker is not None
        gateway.worker.stop(signal.SIGKILL)
        client.close()
        gateway.start_worker()
        records = gateway.records()
        admission, aborted = by_id(records, "admission")[request_id], by_id(records, "aborted")[request_id]
        assert aborted["admission"] == admission["seq"] and aborted["incarnation"] == admission["log"]
        opened = [record for record in records if record["kind"] == "open"][-1]
        assert opened["predecessor"]["incarnation"] == admission["log"] and not opened["predecessor"]["sealed"]


def test_the_last_records_of_a_crashed_worker_can_be_proved_after_its_restart(tmp_path: Path) -> None:
    settings = {"ledger": {"checkpointIntervalSeconds": 60}}
    with local_gateway(tmp_path, settings=settings) as gateway:
        with OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"]) as client:
            for _ in range(3):
                raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=message("hello"))
        assert gateway.worker is not None
        gateway.worker.stop(signal.SIGKILL)
        gateway.start_worker()
        proved = json.loads(_core.prove(str(gateway.ledger), raw.headers["x-request-id"]))["records"]
        assert [evidence["kind"] for evidence in proved] == ["admission", "completion"]
        for evidence in proved:
            _core.verify_proof(evidence["record"].encode(), evidence["proof"], gateway.verifying_key)


def test_a_worker_told_to_stop_finishes_its_streams_and_seals_its_log(tmp_path: Path) -> None:
    with local_gateway(tmp_path) as gateway, OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"]) as client:
        text = "mock:tokens=20 mock:interval=50"
        stream = client.chat.completions.create(model=MODEL, messages=message(text), stream=True)
        pieces = [next(iter(stream))]
        assert gateway.worker is not None
        gateway.worker.process.send_signal(signal.SIGTERM)
        pieces.extend(stream)
        assert pieces[-1].choices[0].finish_reason == "stop"
        assert gateway.worker.process.wait(PATIENCE) == 0
        assert gateway.records()[-1]["kind"] == "seal"
        assert fsck_is_clean(gateway)


def test_a_stream_longer_than_the_drain_is_cut_and_recorded(tmp_path: Path) -> None:
    settings = {"timeouts": {"lameDuckSeconds": 0, "drainSeconds": 1}}
    with local_gateway(tmp_path, settings=settings) as gateway:
        with httpx.Client(timeout=PATIENCE) as client:
            body = {"model": MODEL, "messages": message("mock:stall=2"), "stream": True}
            headers = {"Authorization": f"Bearer {KEYS['acme']}"}
            url = f"{gateway.base_url}/chat/completions"
            with client.stream("POST", url, json=body, headers=headers) as response:
                assert gateway.worker is not None
                gateway.worker.process.send_signal(signal.SIGTERM)
                received = ""
                try:
                    for piece in response.iter_text():
                        received += piece
                except httpx.HTTPError:
                    pass
        assert '"code":"draining"' in received and "[DONE]" not in received
        assert gateway.worker.process.wait(PATIENCE) == 0
        completion = next(record for record in gateway.records() if record["kind"] == "completion")
        assert completion["outcome"] == "drained"


def test_readiness_ends_at_once_and_the_admin_port_stays_while_draining(tmp_path: Path) -> None:
    with local_gateway(tmp_path, settings={"timeouts": {"lameDuckSeconds": 30}}) as gateway:
        gateway.admin_text("/drain", "POST", gateway.admin_token)
        assert gateway.status()["not_ready"] == "draining"
        body = json.dumps({"model": MODEL, "messages": message("hello")}).encode()
        request = chat_request(body, KEYS["acme"]).replace(b"Connection: close\r\n", b"")
        response = send(gateway.address, request)
        assert status_of(response) == 200 and b"connection: close" in response.lower()


@contextmanager
def small_volume(folder: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_full_volume_stops_admission_with_a_clear_answer_and_heals(tmp_path: Path) -> None:
    body = json.dumps({"model": MODEL, "messages": message("hello")}).encode()
    request = chat_request(body, KEYS["acme"])
    settings = {"ledger": {"segmentBytes": 1048576}}
    with small_volume(tmp_path / "ledger") as volume, local_gateway(tmp_path, settings=settings) as gateway:
        assert status_of(send(gateway.address, request)) == 200
        filler = volume / "filler"
        free = os.statvfs(volume).f_bavail * os.statvfs(volume).f_bsize
        filler.write_bytes(b"x" * max(free - 4096, 0))
        answers = [status_of(send(gateway.address, request))]
        while answers[-1] == 200 and len(answers) < 10_000:
            answers.append(status_of(send(gateway.address, request)))
        assert answers[0] == 200 and answers[-1] == 503
        refused = send(gateway.address, request)
        assert error_of(refused)["code"] == "ledger_full" and b"retry-after: " in refused.lower()
        assert gateway.status()["not_ready"] is None, "a full volume is no reason to be replaced"
        filler.unlink()
        wait_until(lambda: status_of(send(gateway.address, request)) == 200, PATIENCE, "admission resumes")
        records = gateway.records()
        assert by_id(records, "admission").keys() == by_id(records, "completion").keys()
        assert len(by_id(records, "completion")) >= answers.count(200)
        assert gateway.worker is not None and gateway.worker.stop() == 0
        assert fsck_is_clean(gateway)
        gateway.stop()


def test_a_worker_killed_again_and_again_starts_on_a_volume_with_room_for_one(tmp_path: Path) -> None:
    request = chat_request(json.dumps({"model": MODEL, "messages": message("hello")}).encode(), KEYS["acme"])
    settings = {"ledger": {"segmentBytes": 2 << 20}}
    with small_volume(tmp_path / "ledger"), local_gateway(tmp_path, settings=settings) as gateway:
        for _ in range(5):
            assert status_of(send(gateway.address, request)) == 200
            assert gateway.worker is not None
            gateway.worker.stop(signal.SIGKILL)
            gateway.start_worker()
        assert len(by_id(gateway.records(), "completion")) == 5
        assert gateway.worker is not None and gateway.worker.stop() == 0
        assert fsck_is_clean(gateway)
        gateway.stop()


def verifier(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(go_binaries.verifier()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def test_an_independent_verifier_agrees_with_root_and_proof_and_catches_one_changed_byte(tmp_path: Path) -> None:
    with local_gateway(tmp_path) as gateway, OpenAI(base_url=gateway.base_url, api_key=KEYS["acme"]) as client:
        for number in range(20):
            raw = client.chat.completions.with_raw_response.create(model=MODEL, messages=message(f"n {number}"))
        proved = json.loads(gateway.admin_text(f"/proof/{raw.headers['x-request-id']}", token=gateway.admin_token))
        assert gateway.worker is not None and gateway.worker.stop() == 0
        origin, size, root = next(gateway.ledger.glob("*/*/checkpoint")).read_text().split("\n")[:3]
        leaves = tmp_path / "leaves"
        _core.export_leaves(str(next(gateway.ledger.glob("*/*/"))), str(leaves))
        computed = verifier("root", "--leaves", str(leaves))
        assert computed.returncode == 0 and size in computed.stdout and root in computed.stdout
        assert origin == gateway.origin and gateway.origin.startswith(LEDGER)
        assert [record["kind"] for record in proved["records"]] == ["admission", "completion"]
        for evidence in proved["records"]:
            record, proof = tmp_path / "record", tmp_path / "record.tlog-proof"
            record.write_text(evidence["record"])
            proof.write_text(evidence["proof"])
            arguments = ["proof", "--vkey", gateway.verifying_key, "--record", str(record), str(proof)]
            accepted = verifier(*arguments)
            assert accepted.returncode == 0, accepted.stderr
            record.write_text(evidence["record"].replace('"seq"', '"sEq"'))
            assert verifier(*arguments).returncode != 0
