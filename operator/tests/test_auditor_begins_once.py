"""An auditor over time: it starts one log, even if the operator is killed, and reports each finding once."""

import contextlib
import copy
from dataclasses import replace
from typing import Any

from proofgate_operator.build.auditor import held_aggregate_entry
from proofgate_operator.kube.errors import ApiError
from tests.auditing import (
    AUDITOR,
    ORIGIN,
    ROLLBACK,
    STALL,
    Asked,
    Process,
    key_secret,
    note,
    reconcile_with,
    report,
)
from tests.fake_cluster import FakeCluster, Killed
from tests.gateways import NAMESPACE
from tests.test_convergence import comparable, new_cluster
from tests.test_faults import mortal


def audited_cluster() -> FakeCluster:
    found = new_cluster(auditor=AUDITOR)
    found.put(key_secret())
    return found


def settle_with(cluster: FakeCluster, process: Process) -> None:
    """Reconcile while the auditor runs, until only the held checkpoint and the status are written."""
    quiet = 0
    for _ in range(100):
        written = len(cluster.writes)
        reconcile_with(cluster, Asked(process.start(cluster)))
        cluster.run_controllers()
        news = [
            write
            for write in cluster.writes[written:]
            if "status" not in write and "demo-auditor" not in write
        ]
        quiet = quiet + 1 if not news else 0
        if quiet == 3:
            return
    raise AssertionError(f"no end: {cluster.writes[-10:]}")


def held_by(cluster: FakeCluster) -> int:
    data = cluster.find("ConfigMap", "demo-auditor")["data"]
    return int(data[held_aggregate_entry(ORIGIN)].split("\n")[1])


def audit_condition(cluster: FakeCluster) -> tuple[str, str]:
    conditions = cluster.find("GovernanceGateway", "demo")["status"]["conditions"]
    [found] = [condition for condition in conditions if condition["type"] == "Audited"]
    return found["status"], found["reason"]


def test_an_auditor_begins_once_and_a_state_that_is_lost_later_is_no_beginning() -> None:
    cluster, process = audited_cluster(), Process()
    settle_with(cluster, process)
    assert process.beginnings == 1 and held_by(cluster) > 0
    assert audit_condition(cluster) == ("True", "NothingFound")
    process.heads = None
    for _ in range(3):
        reconcile_with(cluster, Asked(process.start(cluster)))
    assert process.beginnings == 1
    assert audit_condition(cluster) == ("False", "AuditorStateLost")


def without_chance(cluster: FakeCluster) -> dict[Any, Any]:
    """Return the objects without random values: the held checkpoint and the ledger's key."""
    found = copy.deepcopy(comparable(cluster))
    del found[("ConfigMap", NAMESPACE, "demo-auditor")]
    [container] = found[("StatefulSet", NAMESPACE, "demo-auditor")][0]["template"]["containers"]
    command = container["command"]
    at = command.index("--ledger-key") + 1
    container["command"] = [*command[:at], *command[at + 1 :]]
    assert command[at].startswith("proofgate.dev/team/demo+")
    return found


def test_killed_at_any_request_the_successor_goes_on_and_a_lost_state_is_no_beginning() -> None:
    """The operator is killed at each request. If a checkpoint was held, an auditor that lost its state stops;
    otherwise nobody had seen one, and it may start."""
    begin = audited_cluster()
    reference = mortal(begin)
    settle_with(reference, Process())
    assert len(reference.requests) > 30
    for count in reference.fatal():
        cluster, process = mortal(begin), Process()
        cluster.requests_left = count
        with contextlib.suppress(Killed):
            settle_with(cluster, process)
        cluster.requests_left = None
        cluster.restart()
        begun = process.beginnings
        held = ("ConfigMap", NAMESPACE, "demo-auditor") in cluster.objects
        if held:
            process.heads = None
        settle_with(cluster, process)
        assert process.beginnings == (begun if held else 1), f"killed at request {count}"
        assert audit_condition(cluster)[0] == ("False" if held else "True"), f"killed at request {count}"
        assert without_chance(cluster) == without_chance(reference), f"killed at request {count}"


def test_what_another_operator_held_meanwhile_is_not_set_back() -> None:
    cluster, process = audited_cluster(), Process()
    settle_with(cluster, process)
    ahead = (process.heads or 0) + 9
    cluster.stale = True
    cluster.find("ConfigMap", "demo-auditor")["data"][held_aggregate_entry(ORIGIN)] = note(ahead)
    assert not reconcile_with(cluster, Asked(report(ahead - 1))).failed
    assert held_by(cluster) == ahead


def events(cluster: FakeCluster) -> list[str]:
    found = [live for key, live in cluster.objects.items() if key[0] == "Event"]
    return sorted(event["message"] for event in found if event["reason"] == "AuditFinding")


def test_each_finding_is_an_event_once_also_by_the_next_operator() -> None:
    cluster, process = audited_cluster(), Process()
    settle_with(cluster, process)
    asked = Asked(report(9, ROLLBACK))
    reconcile_with(cluster, asked)
    reconcile_with(cluster, asked)
    again = replace(STALL, since=STALL.since + 1)
    asked.audits.answer = report(9, ROLLBACK, STALL)
    reconcile_with(cluster, asked)
    reconcile_with(cluster, Asked(report(9, ROLLBACK, STALL)))
    told = ["rollback (diverged): proofgate.dev/team/demo/0/X: it was set back"]
    stalled = "stalled (incomplete): proofgate.dev/team/demo/1/Y: records wait"
    assert events(cluster) == [*told, stalled]
    # A finding that ended and started again is a new finding.
    asked.audits.answer = report(9, ROLLBACK, again)
    reconcile_with(cluster, asked)
    assert events(cluster) == [*told, stalled, stalled]


def test_an_event_that_is_refused_is_tried_again_and_stops_nothing() -> None:
    cluster, process = audited_cluster(), Process()
    settle_with(cluster, process)
    asked = Asked(report(9, ROLLBACK))
    cluster.refuse["Event"] = ApiError(403, "Forbidden", "no events")
    assert not reconcile_with(cluster, asked).failed
    del cluster.refuse["Event"]
    reconcile_with(cluster, asked)
    assert len(events(cluster)) == 1


def test_a_finding_at_a_gateway_at_rest_writes_the_status_and_nothing_else() -> None:
    cluster, process = audited_cluster(), Process()
    settle_with(cluster, process)
    size = held_by(cluster)
    written = len(cluster.writes)
    reconcile_with(cluster, Asked(report(size, ROLLBACK)))
    assert cluster.writes[written:] == ["PATCH GovernanceGateway demo/status"]
    assert audit_condition(cluster) == ("False", "LedgerDiverged")
