"""The behavior of the agent beside HAProxy that does not depend on HAProxy's release."""

import hashlib
import json
import re
import signal
from contextlib import ExitStack
from typing import Any

from tests.agents import NEW_KEY, agent, replace_map, tenant_of, use_weights
from tests.haproxy_bench import KEYS, Bench, eventually


def test_a_map_that_is_no_map_changes_nothing_and_keeps_no_pod_from_serving(haproxy: Bench) -> None:
    with agent(haproxy) as beside:
        haproxy.tenant_map.write_text(f"{'0' * 64} tenant-0; shutdown sessions\n")
        refused = {"target": "tenants.map", "reason": "refused"}
        eventually(lambda: beside.metric("failures_total", **refused) == 1, "the invalid file is refused")
        assert tenant_of(haproxy, KEYS["tenant-0"][0]) == "tenant-0"
        assert beside.ready()
        assert "line 1 is not a key and a value" in beside.log()
        replace_map(haproxy, {"tenant-0": [NEW_KEY]})
        eventually(lambda: tenant_of(haproxy, NEW_KEY) == "tenant-0", "the next valid file is loaded")


def test_the_agent_is_not_ready_while_haproxy_does_not_answer(haproxy_binary: str, haproxy: Bench) -> None:
    with agent(haproxy) as beside:
        haproxy.process.send_signal(signal.SIGKILL)
        haproxy.process.wait()
        eventually(lambda: not beside.ready(), "the agent notices")
        replace_map(haproxy, {"tenant-0": [NEW_KEY]})
        haproxy.restart(haproxy_binary)
        eventually(beside.ready, "the agent is ready again")
        assert tenant_of(haproxy, NEW_KEY) == "tenant-0"


def test_haproxy_that_starts_while_no_worker_is_up_is_ready_and_tells_clients_when_to_come_back(
    haproxy_binary: str, haproxy: Bench
) -> None:
    for worker in haproxy.workers:
        worker.ready = False
    haproxy.restart(haproxy_binary)
    with agent(haproxy, waits=False) as beside:
        eventually(beside.ready, "the agent is ready")
        status, headers, body = haproxy.ask(KEYS["tenant-0"][0])
        assert status == 503 and body["error"]["code"] == "no_worker_available"
        assert headers["retry-after"] == "1"


def test_the_agent_is_not_ready_before_haproxy_has_the_weights(haproxy: Bench) -> None:
    haproxy.weights.write_text("worker-1 x\n")
    with ExitStack() as ends:
        beside = ends.enter_context(agent(haproxy, waits=False))
        eventually(
            lambda: beside.get("/readyz") == (503, "not in sync: weights.map\n"), "the agent is out of sync"
        )
        refused = {"target": "weights.map", "reason": "refused"}
        assert beside.metric("failures_total", **refused) == 1
        use_weights(haproxy, {1: 34})
        eventually(beside.ready, "the agent is ready")


def test_no_digest_of_a_key_is_in_the_agents_log_as_a_whole(haproxy: Bench) -> None:
    with agent(haproxy) as beside:
        replace_map(haproxy, KEYS | {"tenant-0": [NEW_KEY]})
        eventually(lambda: tenant_of(haproxy, NEW_KEY) == "tenant-0", "HAProxy knows the new key")
        digest = hashlib.sha256(NEW_KEY.encode()).hexdigest()
        eventually(lambda: f"+{digest[:8]} " in beside.log(), "the change is logged")
        assert not re.search(r"[0-9a-f]{9}", beside.log().replace(str(haproxy.folder), ""))


def test_the_agent_finds_out_whether_requests_through_haproxy_are_answered(haproxy: Bench) -> None:
    with agent(haproxy, asks=True) as beside:

        def told() -> dict[str, Any]:
            return dict(json.loads(beside.get("/answers")[1]))

        eventually(lambda: told()["answered"] is True, "a worker has answered")
        haproxy.set_ready(0)
        eventually(lambda: told()["reason"] == "NoWorkerUp", "the agent reports that no worker is up")
        haproxy.set_ready(3)
        eventually(lambda: told()["answered"] is True, "a worker has answered again")
