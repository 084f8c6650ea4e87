"""A new configuration during requests is applied completely or not at all, and no request is cut off."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

from e2e.evidence import configuration
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.programs import PATIENCE, wait_until
from e2e.worker.raw_http import chat_request, send, status_of


def ask(gateway: LocalGateway, text: str = "hi") -> bytes:
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}]}).encode()
    return send(gateway.address, chat_request(body, KEYS["acme"]))


def reload(gateway: LocalGateway) -> str:
    return gateway.admin_text("/reload", method="POST", token=gateway.admin_token)


def test_a_new_rule_holds_from_the_reload_on_and_every_record_names_its_configuration(folder: Path) -> None:
    with local_gateway(folder) as gateway:
        assert status_of(ask(gateway, "bluebird")) == 200
        rule = {"id": "codename", "reason": "A codename.", "literals": ["bluebird"], "score": 100, "action": "Block"}
        gateway.settings["policy"] = {"rules": [rule]}
        gateway.write_configuration()
        reload(gateway)
        assert status_of(ask(gateway, "bluebird")) == 403
        records = gateway.records()
    changed = next(record for record in records if record["kind"] == "config")
    before = [record["config"] for record in records if record["seq"] < changed["seq"] and record["kind"] != "open"]
    after = [record["config"] for record in records if record["seq"] > changed["seq"]]
    assert set(before) == {changed["previous"]}
    assert set(after) == {changed["config"][:16]}


def test_the_rules_behind_a_recorded_verdict_are_shown_by_the_digest_in_its_record(folder: Path) -> None:
    with local_gateway(folder) as gateway:
        rule = {"id": "codename", "reason": "A codename.", "literals": ["bluebird"], "score": 100, "action": "Block"}
        gateway.settings["policy"] = {"rules": [rule]}
        gateway.write_configuration()
        reload(gateway)
        assert status_of(ask(gateway, "bluebird")) == 403
        assert gateway.status()["config_archived"] is True
        gateway.settings["policy"] = {}
        gateway.write_configuration()
        reload(gateway)
        assert status_of(ask(gateway, "bluebird")) == 200
        records = gateway.records()
        refused = next(record for record in records if record["kind"] == "rejection")
        admitted = next(record for record in records if record["kind"] == "admission")
        rules = [configuration(gateway.ledger, record["config"])["policy"]["rules"] for record in (refused, admitted)]
    assert [[rule["id"] for rule in of_one] for of_one in rules] == [["codename"], []]


def test_a_worker_that_starts_on_a_refused_file_serves_with_the_accepted_one_and_says_so(folder: Path) -> None:
    with local_gateway(folder) as gateway:
        accepted = folder / "accepted.yaml"
        accepted.write_bytes((folder / "gateway.yaml").read_bytes())
        assert gateway.worker is not None
        gateway.worker.stop()
        gateway.settings["policy"] = {"packs": ["no-such-pack"]}
        gateway.write_configuration()
        gateway.start_worker({"PROOFGATE_ACCEPTED_CONFIG": str(accepted)})
        assert status_of(ask(gateway)) == 200
        wait_until(lambda: gateway.status()["last_reload_error"], PATIENCE, "the refusal is reported")
        status = gateway.status()
        assert status["last_reload_error"]["problems"][0]["file"] == str(folder / "gateway.yaml")
        assert status["config_file_digest"] == hashlib.sha256(accepted.read_bytes()).hexdigest()
        assert status_of(ask(gateway)) == 200
        # After the correction, the configuration is applied without a restart.
        del gateway.settings["policy"]
        gateway.settings["timeouts"] = {"drainSeconds": 7}
        gateway.write_configuration()
        wait_until(lambda: gateway.status()["last_reload_error"] is None, PATIENCE, "the mended file is taken on")


def test_stages_are_measured_only_while_somebody_asks(folder: Path) -> None:
    with local_gateway(folder / "off") as gateway:
        ask(gateway)
        assert "proofgate_stage_seconds" not in gateway.admin_text("/metrics")
    with local_gateway(folder / "on", settings={"profiling": {"stages": True}}) as gateway:
        ask(gateway)
        # An exchange is measured until its end, which is after its last byte; its threads check at different times.
        for stage in (
            "accept",
            "parse",
            "auth",
            "limit",
            "policy",
            "admission_record",
            "relay",
            "total",
            "unaccounted",
        ):
            assert_measured(gateway, stage)
        for interval in ("ledger_wake", "ledger_batch", "loop_lag"):
            assert_measured(gateway, interval)


def assert_measured(gateway: LocalGateway, stage: str) -> None:
    measured = re.compile(rf'^proofgate_stage_seconds_count{{stage="{stage}"}} [1-9]', re.MULTILINE)
    wait_until(lambda: measured.search(gateway.admin_text("/metrics")), PATIENCE, f"the stage {stage}")
