"""Exchanges of a real ledger at a collector that uses OpenTelemetry's own types."""

from __future__ import annotations

import json
import signal
from pathlib import Path

from proofgate import _core

from e2e.auditing import AUDITOR, Audit, ask_and_wait, fetch, following
from e2e.evidence import records
from e2e.local_gateway import local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.otlp_receiver import receiver


def ended(ledger: Path, shard: str = "0") -> set[str]:
    """The ids of exchanges that have an end."""
    ends = ("completion", "aborted", "rejection")
    return {record["id"] for record in records(ledger, shard) if record["kind"] in ends}


def test_every_exchange_comes_at_least_once_over_kills_of_the_auditor_and_silence_of_the_collector(
    tmp_path: Path,
) -> None:
    with local_gateway(tmp_path) as gateway, receiver() as collector:
        secret, _ = _core.generate_key(AUDITOR)
        (tmp_path / "auditor-key").write_text(secret)
        audit = Audit(tmp_path, gateway.verifying_key)
        siem = ["--siem", collector.url.replace("http://", "otlp+http://"), "--siem-patience", "0.5"]

        def sent() -> set[str]:
            return {told["proofgate.request.id"] for told in collector.logs}

        ask_and_wait(gateway, 3)
        with following(audit, "--new-aggregate", *siem) as (program, _):
            wait_until(lambda: len(sent()) == 3, PATIENCE, "what was there is sent")
            collector.status = 503
            ask_and_wait(gateway, 2)
            program.stop(signal.SIGKILL)
        taken = len(collector.logs)
        with following(audit, *siem) as (_, url):
            wait_until(
                lambda: [one["code"] for one in json.loads(fetch(f"{url}/findings"))["findings"]] == ["siem_lags"],
                PATIENCE,
                "it is reported that nothing is removed",
            )
            collector.logs = collector.logs[:taken]
            collector.status = 200
            wait_until(lambda: len(sent()) == 5, PATIENCE, "the rest is sent")
            assert gateway.worker is not None and gateway.worker.stop() == 0
            wait_until(lambda: sent() == ended(gateway.ledger), PATIENCE, "all of the ledger is sent")
            wait_until(lambda: json.loads(fetch(f"{url}/findings"))["findings"] == [], PATIENCE, "it is over")
        told = collector.logs[0]
        assert (told["proofgate.tenant"], told["gen_ai.operation.name"]) == ("acme", "chat")
        assert told["proofgate.record.origin"] == gateway.origin
