"""The programs expose all metrics that alerts and dashboards query."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import Metric, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from proofgate import _core
from proofgate.auditor import metrics as auditor_metrics
from proofgate.auditor.watch import LedgerWatcher
from proofgate.haproxy_sidecar.agent import build_targets
from proofgate.haproxy_sidecar.follower import SyncLoop
from proofgate.haproxy_sidecar.metrics import render
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi
from proofgate.index.audited_index import AuditedIndex
from proofgate.mirror.directory import DirectoryTarget
from proofgate.mirror.mirror import Mirror
from proofgate.siem.cursor import EventCursor
from proofgate.siem.otlp import OtlpSink
from proofgate.siem.stream import EventStream
from proofgate_operator import metrics

from e2e.cluster import toolchain
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway
from e2e.metric_names import asked_for, exposed, expressions
from e2e.programs import PATIENCE, Program, start_ready, wait_until
from e2e.worker.raw_http import chat_request, send, status_of

HAPROXY = """
defaults
    mode tcp
    timeout connect 1s
    timeout client 1s
    timeout server 1s
frontend metrics
    mode http
    bind unix@{socket}
    http-request use-service prometheus-exporter
backend workers
    server worker-0 127.0.0.1:1
"""
#: The kubelet's metrics of the volume.
ELSEWHERE = {"kubelet_volume_stats_available_bytes", "kubelet_volume_stats_capacity_bytes"}

#: Metrics without a series until a provider has failed, or an external policy has been called.
NOT_YET = {"proofgate_provider_failures_total", "proofgate_python_policy_wait_seconds_bucket"}


def beginning_with(prefix: str) -> set[str]:
    """The queried metrics with this prefix."""
    found = {name for name in asked_for(expressions()) if name.startswith(prefix)}
    assert found
    return found


def test_every_metric_that_is_asked_for_belongs_to_one_of_the_programs() -> None:
    ours = beginning_with("proofgate_") | beginning_with("haproxy_") | beginning_with("process_")
    assert asked_for(expressions()) - ours == ELSEWHERE


def test_every_metric_of_the_worker_that_is_asked_for_exists(folder: Path) -> None:
    # Stage metrics exist only while profiling is on, and analysis metrics only after the first full window.
    settings = {"profiling": {"stages": True}, "analysis": {"window": 30}}
    with local_gateway(folder, settings=settings) as gateway:
        assert {ask(gateway, KEYS["acme"]) for _ in range(30)} == {200}
        assert ask(gateway, "no-key-of-anybody") == 401
        wait_until(
            lambda: "proofgate_analysis_windows_total 1\n" in gateway.admin_text("/metrics"), PATIENCE, "it is full"
        )
        # The worker omits the use of limits while the core is busy.
        wait_until(lambda: "proofgate_limit_used" in gateway.admin_text("/metrics"), PATIENCE, "limits are told")
        told = exposed(gateway.admin_text("/metrics"))
    # Credential metrics exist only with an identity in a cloud; test_cloud_identity.py checks them.
    elsewhere = ("proofgate_operator_", "proofgate_haproxy_sidecar_", "proofgate_auditor_", "proofgate_credential_")
    others = set().union(*map(beginning_with, elsewhere)) | NOT_YET
    assert (beginning_with("proofgate_") | beginning_with("process_")) - others - told == set()


def ask(gateway: LocalGateway, key: str, model: str = MODEL, text: str = "hello there") -> int:
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": text}]}).encode()
    return status_of(send(gateway.address, chat_request(body, key)))


def told(gateway: LocalGateway, name: str, *labels: str) -> dict[tuple[str, ...], float]:
    """The samples of one name that are not zero, by the values of these labels."""
    families = text_string_to_metric_families(gateway.admin_text("/metrics"))  # type: ignore[no-untyped-call]
    samples = (sample for family in families for sample in family.samples if sample.name == name)
    return {tuple(sample.labels[label] for label in labels): sample.value for sample in samples if sample.value}


def tenants(names: dict[str, str], **settings: Any) -> dict[str, Any]:
    """Tenants by their keys; `settings` apply to `acme`."""
    return {
        "tenants": [
            {
                "name": name,
                "keyHashes": [_core.hash_api_key(key)],
                **(settings if name == "acme" else {}),
            }
            for name, key in names.items()
        ]
    }


def test_what_each_tenant_asked_and_used_is_counted_exactly(folder: Path) -> None:
    rule = {"id": "secret", "reason": "A test.", "literals": ["aurora"]}
    settings = tenants(KEYS, limits={"requestsPerMinute": 3}) | {"policy": {"rules": [rule]}}
    with local_gateway(folder, settings=settings) as gateway:
        assert [ask(gateway, KEYS["acme"]) for _ in range(5)] == [200, 200, 200, 429, 429]
        assert [ask(gateway, KEYS["globex"], text=text) for text in ("one", "aurora", "one two three")] == [
            200,
            403,
            200,
        ]
        assert ask(gateway, KEYS["globex"], model="no-such-model") == 404
        assert ask(gateway, "no-key-of-anybody") == 401
        expected = {
            ("acme", MODEL, "mock", "complete"): 3,
            ("acme", MODEL, "mock", "refused"): 2,
            ("globex", MODEL, "mock", "complete"): 2,
            ("globex", MODEL, "mock", "denied"): 1,
            ("globex", "", "", "refused"): 1,
        }
        labels = ("tenant", "model", "provider", "outcome")
        wait_until(lambda: told(gateway, "proofgate_requests_total", *labels) == expected, PATIENCE, "all are counted")
        names = {record["id"]: record["tenant"] for record in gateway.records() if record["kind"] == "admission"}
        for kind in ("prompt_tokens", "completion_tokens"):
            used = dict.fromkeys(KEYS, 0)
            for record in gateway.records():
                if record["kind"] == "completion":
                    used[names[record["id"]]] += record["usage"][kind]
            assert all(used.values())
            counted = told(gateway, f"proofgate_{kind}_total", "tenant", "model", "provider")
            assert counted == {(name, MODEL, "mock"): count for name, count in used.items()}
        for kind in ("request_duration", "time_to_first_byte"):
            counted = told(gateway, f"proofgate_{kind}_seconds_count", "model", "provider", "stream")
            assert counted == {(MODEL, "mock", "false"): 5}
        refused = {
            ("429", "requests_per_minute_exceeded"): 2,
            ("403", "policy_blocked"): 1,
            ("404", "model_not_found"): 1,
        }
        assert told(gateway, "proofgate_rejections_total", "status", "code") == refused | {
            ("401", "invalid_api_key"): 1
        }
        limits = {("acme", "requestsPerMinute"): 3}
        wait_until(lambda: told(gateway, "proofgate_limit_used", "tenant", "limit") == limits, PATIENCE, "it is used")
        assert told(gateway, "proofgate_limit_maximum", "tenant", "limit") == limits
        for key in KEYS.values():
            assert key not in gateway.admin_text("/metrics")
            assert _core.hash_api_key(key) not in gateway.admin_text("/metrics")


def test_tenants_beyond_the_label_sets_are_counted_together(folder: Path) -> None:
    names = ["other", *(f"team-{number}-tenant" for number in range(11))]
    keys = {name: f"key-of-tenant-number-{number:08}" for number, name in enumerate(names)}
    settings = tenants(keys) | {"metrics": {"labelSets": 4}}
    with local_gateway(folder, settings=settings) as gateway:
        assert {ask(gateway, key) for key in keys.values()} == {200}
        assert {ask(gateway, key) for key in keys.values()} == {200}
        expected = {(name,): 2.0 for name in list(keys)[:4]} | {("(other)",): 16.0}
        wait_until(lambda: told(gateway, "proofgate_requests_total", "tenant") == expected, PATIENCE, "all are counted")


def test_the_time_of_the_newest_checkpoint_follows_the_requests(folder: Path) -> None:
    name = "proofgate_ledger_checkpoint_timestamp_seconds"
    begun = int(time.time())
    with local_gateway(folder, settings={"ledger": {"checkpointIntervalSeconds": 1}}) as gateway:
        first = told(gateway, name)[()]
        assert begun <= first <= time.time()

        def signed_later() -> bool:
            return ask(gateway, KEYS["acme"]) == 200 and told(gateway, name)[()] > first

        wait_until(signed_later, PATIENCE, "a later checkpoint is reported")
        assert told(gateway, "proofgate_ledger_checkpoint_interval_seconds") == {(): 1.0}


def test_every_metric_of_the_agent_beside_haproxy_that_is_asked_for_exists(folder: Path) -> None:
    found = build_targets(RuntimeApi(folder / "haproxy.sock"), [folder / "tenants.map"], None, folder / "tls.crt")
    assert beginning_with("proofgate_haproxy_sidecar_") - exposed(render(SyncLoop(found))) == set()


def auditor_exposition(folder: Path) -> str:
    """The metrics of an auditor that has a witness, a mirror, a stream and an index."""
    (signing, _), (_, ledger) = (_core.generate_key(name) for name in ("proofgate.dev/audit", "proofgate.dev/ledger"))
    (folder / "ledger").mkdir()
    _, witness = _core.generate_witness_key("witness.example/w")
    policy = f"witness w {witness} https://witness.example\nquorum w\n".encode()
    paths = str(folder / "ledger"), str(folder / "state")
    auditor = _core.Auditor(*paths, signing, ledger, *(10**7,) * 3, resume=True, policy=policy)
    watch = LedgerWatcher(auditor, 0)
    watch.mirrors = [Mirror(DirectoryTarget(folder / "mirror"), auditor, folder / "ledger", folder / "state")]
    sink = OtlpSink("siem", "http://127.0.0.1:9", "ledger", None, None)
    watch.streams = [EventStream(sink, EventCursor(folder / "state", "siem", ledger), ledger)]
    return auditor_metrics.render(watch, AuditedIndex(folder / "index", ledger))


def test_every_metric_of_the_auditor_that_is_asked_for_exists(folder: Path) -> None:
    assert beginning_with("proofgate_auditor_") - exposed(auditor_exposition(folder)) == set()


class Scraped:
    """The families of an exposition, for writing them in the text format that promtool reads."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = list(families)

    def collect(self) -> Iterator[Metric]:
        """Yields the families."""
        yield from self._families


def complaints(exposition: str) -> str:
    """promtool's complaints about the names, units, types and help texts of an exposition."""
    toolchain.ensure([toolchain.PROMTOOL])
    command: list[str | Path] = [toolchain.binary("promtool"), "check", "metrics"]
    done = subprocess.run(command, input=exposition, capture_output=True, text=True)
    return done.stdout + done.stderr


def test_promtool_has_nothing_against_the_metrics_of_a_worker(folder: Path) -> None:
    settings = tenants(KEYS, limits={"requestsPerMinute": 3, "dollarsPerMonth": "5"}) | {"profiling": {"stages": True}}
    with local_gateway(folder, settings=settings) as gateway:
        assert ask(gateway, KEYS["globex"]) == 200
        assert ask(gateway, "no-key-of-anybody") == 401
        wait_until(lambda: told(gateway, "proofgate_requests_total"), PATIENCE, "all are counted")
        families = text_string_to_metric_families(gateway.admin_text("/metrics"))  # type: ignore[no-untyped-call]
        exposition = generate_latest(Scraped(families)).decode()
    assert "proofgate_build_info" in exposition and "process_cpu_seconds_total" in exposition
    assert complaints(exposition) == ""


def test_promtool_has_nothing_against_the_metrics_of_an_auditor_the_operator_and_the_sidecar(folder: Path) -> None:
    found = build_targets(RuntimeApi(folder / "haproxy.sock"), [folder / "tenants.map"], None, folder / "tls.crt")
    assert complaints(render(SyncLoop(found))) == ""
    assert complaints(auditor_exposition(folder)) == ""
    assert complaints(generate_latest(metrics.REGISTRY).decode()) == ""


def test_every_metric_of_the_operator_that_is_asked_for_exists() -> None:
    told = exposed(generate_latest(metrics.REGISTRY).decode())
    assert beginning_with("proofgate_operator_") - told == set()


def test_every_metric_of_haproxy_that_is_asked_for_exists(folder: Path) -> None:
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    # HAProxy limits socket paths to 97 bytes, and a test's folder may be longer.
    with tempfile.TemporaryDirectory(prefix="haproxy-", dir="/tmp") as short:
        socket = Path(short) / "metrics.sock"
        (folder / "haproxy.cfg").write_text(HAPROXY.format(socket=socket))
        haproxy, _ = start_ready(
            lambda: Program.start("haproxy", folder, ["-db", "-f", str(folder / "haproxy.cfg")], [program]),
            lambda haproxy: haproxy.wait_until(socket.exists, "it listens"),
        )
        try:
            command = ["curl", "-sS", "--unix-socket", str(socket), "http://haproxy/metrics"]
            told = exposed(subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout)
        finally:
            haproxy.stop()
    assert beginning_with("haproxy_") - told == set()
