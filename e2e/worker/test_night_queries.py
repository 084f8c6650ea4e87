"""The runbooks' queries during failures: a worker gets into the state of the alert, and the answers name the cause.

The pages of these alerts contain only queries, which need no cluster.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from proofgate import _core

from e2e import swap
from e2e.local_gateway import KEYS, MODEL, LocalGateway, local_gateway, not_over_midnight
from e2e.ports import free_port
from e2e.programs import PATIENCE, PROOFGATE, Program, start_ready, wait_until
from e2e.promql import Scrapes, asked
from e2e.runbooks import blocks, queries
from e2e.worker.raw_http import answer, chat_request, recording_upstream, send, status_of

LABELS = {"namespace": "team", "gateway": "llm", "pod": "llm-worker-0"}
HAPROXY = """
defaults
    mode http
    timeout connect 10s
    timeout client 60s
    timeout server 60s
frontend metrics
    bind unix@{folder}/metrics.sock
    http-request use-service prometheus-exporter
frontend clients
    bind unix@{folder}/clients.sock
    default_backend workers
backend workers
    server worker-0 127.0.0.1:{port} maxconn 1
"""


def answers(alert: str, scrapes: Scrapes, **labels: str) -> list[str]:
    """Prometheus's answer to each query of an alert's page."""
    return [asked(query, [scrapes]) for query in queries(alert, {**LABELS, **labels})]


def body(text: str = "hi", **fields: Any) -> bytes:
    return json.dumps({"model": MODEL, "messages": [{"role": "user", "content": text}], **fields}).encode()


def ask(gateway: LocalGateway, request: bytes, tenant: str = "acme") -> int:
    return status_of(send(gateway.address, chat_request(request, KEYS[tenant])))


def limited(**limits: Any) -> dict[str, Any]:
    """Settings with these limits for one of the two tenants."""
    tenants = [{"name": tenant, "keyHashes": [_core.hash_api_key(key)]} for tenant, key in KEYS.items()]
    return {"tenants": [{**tenant, "limits": limits} if tenant["name"] == "acme" else tenant for tenant in tenants]}


def test_where_a_budget_is_used_the_runbooks_name_the_tenant_and_how_much_of_it(folder: Path) -> None:
    not_over_midnight(2 * PATIENCE)
    scrapes = Scrapes(LABELS)
    with local_gateway(folder, settings=limited(requestsPerDay=5)) as gateway:

        def used() -> str:
            scrapes.add(gateway.admin_text("/metrics"))
            return answers("ProofgateBudgetNearlyUsed", scrapes, limit="requestsPerDay")[0]

        assert [ask(gateway, body()) for _ in range(4)] == [200] * 4
        wait_until(lambda: used() == '{tenant="acme"} 8E-01', PATIENCE, "four of five are used")
        assert [ask(gateway, body()) for _ in range(3)] == [200, 429, 429]
        wait_until(lambda: used() == '{tenant="acme"} 1E+00', PATIENCE, "all are used")
        assert [ask(gateway, body()) for _ in range(2)] == [429, 429]
        scrapes.add(gateway.admin_text("/metrics"))
        share, refused = answers("ProofgateBudgetUsed", scrapes, limit="requestsPerDay")
        assert share == '{tenant="acme"} 1E+00'
        assert 'tenant="acme"' in refused and not refused.endswith(" 0E+00")


def test_where_requests_wait_for_limits_the_runbook_of_added_latency_counts_them(folder: Path) -> None:
    scrapes = Scrapes(LABELS)
    with local_gateway(folder, settings=limited(tokensPerMinute=600)) as gateway, ThreadPoolExecutor(2) as clients:
        scrapes.add(gateway.admin_text("/metrics"))
        held = body("mock:stall=1", stream=True, max_tokens=500)
        with socket.create_connection(tuple(gateway.address.rsplit(":", 1)), timeout=PATIENCE) as first:  # type: ignore[arg-type]
            first.sendall(chat_request(held, KEYS["acme"]))
            assert b" 200 " in first.recv(1024)
            waiting = clients.submit(ask, gateway, body(max_tokens=500))

            def waits() -> bool:
                scrapes.add(gateway.admin_text("/metrics"))
                return answers("ProofgateAddsLatency", scrapes)[1] == '{pod="llm-worker-0"} 1E+00'

            wait_until(waits, PATIENCE, "the query counts the one that waits")
        assert waiting.result() in (200, 429)


def test_where_streams_begin_late_the_runbook_shows_by_how_much_and_that_it_is_the_provider(folder: Path) -> None:
    scrapes = Scrapes(LABELS)
    labels = {"model": MODEL, "provider": "mock"}
    with local_gateway(folder) as gateway:
        assert ask(gateway, body(stream=True)) == 200
        counted = f'seconds_count{{model="{MODEL}",provider="mock",stream="true"}} 1\n'
        wait_until(lambda: counted in gateway.admin_text("/metrics"), PATIENCE, "the first stream is counted")
        scrapes.add(gateway.admin_text("/metrics"))
        assert ask(gateway, body("mock:latency=1500", stream=True)) == 200

        def late() -> bool:
            scrapes.add(gateway.admin_text("/metrics"))
            return _value(answers("ProofgateFirstByteIsSlow", scrapes, **labels)[0]) > 1

        wait_until(late, PATIENCE, "the stream that began late is counted")
        first_byte, admission, failures = answers("ProofgateFirstByteIsSlow", scrapes, **labels)
        assert "llm-worker-0" in first_byte
        assert _value(admission) < _value(first_byte)
        assert failures == ""


def _value(found: str) -> float:
    """The value of the only series; -1 if there is none."""
    return float(found.rpartition("} ")[2]) if found else -1.0


def test_where_a_model_was_swapped_the_runbook_names_the_tenant_and_what_differs(folder: Path) -> None:
    scrapes = Scrapes(LABELS)
    listen = f"127.0.0.1:{free_port()}"
    with local_gateway(folder, settings=swap.SETTINGS, upstream_listen=listen) as gateway:
        swap.ask(gateway, 3 * swap.WINDOW)
        wait_until(lambda: swap.windows(gateway) == 3, PATIENCE, "three windows are full")
        scrapes.add(gateway.admin_text("/metrics"))
        swap.swap(gateway)
        swap.ask(gateway, swap.WINDOW)
        wait_until(lambda: len(swap.analyses(gateway)) == 4, PATIENCE, "the window behind the swap is recorded")
        scrapes.add(gateway.admin_text("/metrics"))
        found, means = answers("ProofgateAnswersChanged", scrapes, model=MODEL)
        by_finding = dict(part.rsplit("} ", 1) for part in found.split(", {"))
        changed = {name for name, value in by_finding.items() if float(value) > 0}
        assert {name.removeprefix("{") for name in changed} == {
            'finding="entropy", tenant="acme"',
            'finding="opening", tenant="acme"',
        }
        assert 'measure="entropy' in means
        assert gateway.worker is not None
        gateway.worker.stop()
        shutil.copytree(gateway.ledger / "0", folder / "copy-of-the-shard")
        page = [block for block in blocks() if block.alert == "ProofgateAnswersChanged"]
        [commands] = [block for block in page if block.language == "sh"]
        script = f'proofgate() {{ {" ".join(map(str, PROOFGATE))} "$@"; }}\n{commands.text}'
        done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        assert '"findings":["entropy","opening"]' in done.stdout


def test_where_answers_loop_the_runbook_counts_them(folder: Path) -> None:
    scrapes = Scrapes(LABELS)
    message = {"role": "assistant", "content": "all work and no play makes a dull day, " * 20}
    completion = {
        "id": "x",
        "object": "chat.completion",
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 180, "total_tokens": 181},
    }
    with recording_upstream(answer(json.dumps(completion).encode())) as upstream:
        providers = {"providers": [{"name": "mock", "type": "OpenAI", "baseURL": f"http://{upstream.url}/v1"}]}
        with local_gateway(folder, settings={"analysis": {"window": 30}, **providers}) as gateway:
            assert ask(gateway, body()) == 200
            wait_until(lambda: _loops(gateway) == 1, PATIENCE, "one is found")
            scrapes.add(gateway.admin_text("/metrics"))
            assert [ask(gateway, body()) for _ in range(12)] == [200] * 12
            wait_until(lambda: _loops(gateway) == 13, PATIENCE, "all are found")
            scrapes.add(gateway.admin_text("/metrics"))
    [found] = answers("ProofgateAnswersRepeat", scrapes, model=MODEL, tenant="acme")
    assert found.startswith('{pod="llm-worker-0"}') and _value(found) > 10


def _loops(gateway: LocalGateway) -> int:
    return swap.findings(gateway).get("loop", 0)


@contextmanager
def haproxy(folder: Path, port: int) -> Iterator[Path]:
    """An HAProxy in front of a worker that accepts one connection at a time; gives the folder of its sockets."""
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    # HAProxy limits socket paths to 97 bytes.
    with tempfile.TemporaryDirectory(prefix="haproxy-", dir="/tmp") as short:
        (folder / "haproxy.cfg").write_text(HAPROXY.format(folder=short, port=port))
        running, _ = start_ready(
            lambda: Program.start("haproxy", folder, ["-db", "-f", str(folder / "haproxy.cfg")], [program]),
            lambda started: started.wait_until((Path(short) / "clients.sock").exists, "it listens"),
        )
        try:
            yield Path(short)
        finally:
            running.stop()


def test_where_a_worker_is_full_the_runbook_of_queues_names_it(folder: Path) -> None:
    scrapes = Scrapes(LABELS)
    with (
        socket.create_server(("127.0.0.1", 0)) as worker,
        haproxy(folder, worker.getsockname()[1]) as sockets,
        ExitStack() as clients,
    ):
        for _ in range(3):
            client = clients.enter_context(socket.socket(socket.AF_UNIX))
            client.connect(str(sockets / "clients.sock"))
            client.sendall(b"GET / HTTP/1.1\r\nHost: gateway\r\n\r\n")

        def queued() -> bool:
            command = ["curl", "-sS", "--unix-socket", str(sockets / "metrics.sock"), "http://haproxy/metrics"]
            scrapes.add(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            return asked('haproxy_backend_current_queue{proxy="workers"}', [scrapes]).endswith("} 2E+00")

        wait_until(queued, PATIENCE, "two wait for the third")
        sessions, _ = answers("ProofgateConnectionsQueue", scrapes)
        assert 'server="worker-0"' in sessions and _value(sessions) == 1


def test_where_answers_are_too_many_for_the_analysis_the_runbook_names_the_reason(folder: Path) -> None:
    alert = "ProofgateAnswersNotAnalysed"
    scrapes = Scrapes(LABELS)
    small = {"maxAnswerBytes": 65536, "maxCopyBytes": 65536, "window": 30}
    with local_gateway(folder, settings={"analysis": small}) as gateway, ExitStack() as clients:
        scrapes.add(gateway.admin_text("/metrics"))
        for _ in range(3):
            host, port = gateway.address.rsplit(":", 1)
            client = clients.enter_context(socket.create_connection((host, int(port)), timeout=PATIENCE))
            client.sendall(chat_request(body("mock:stall=400 mock:tokens=500", stream=True), KEYS["acme"]))
            assert b" 200 " in client.recv(1024)

        def lost() -> bool:
            assert ask(gateway, body("mock:tokens=500", stream=True)) == 200
            scrapes.add(gateway.admin_text("/metrics"))
            return any(part.split("} ")[1] != "0E+00" for part in answers(alert, scrapes)[0].split(", {") if part)

        wait_until(lost, PATIENCE, "answers are lost")
        assert 'reason="memory"' in answers(alert, scrapes)[0]
