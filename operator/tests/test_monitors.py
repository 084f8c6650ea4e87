"""PodMonitors, and the clients that may read metrics."""

from proofgate_operator.api.conditions import ConditionType
from proofgate_operator.api.gateway import Gateway
from proofgate_operator.build import auditor, haproxy, networkpolicy, statefulset
from proofgate_operator.build.monitoring import pod_monitors
from proofgate_operator.build.naming import Defaults, Manifest, names
from proofgate_operator.build.worker_config import ADMIN_PORT
from proofgate_operator.plan.observed_state import Ref
from tests.auditing import AUDITOR
from tests.gateways import manifest
from tests.world import World

DEFAULTS = Defaults("worker:1", "haproxy:1")


def gateway(**monitoring: object) -> Gateway:
    return Gateway.from_manifest(manifest(monitoring=monitoring))


def pods(of: Gateway) -> list[Manifest]:
    return [
        statefulset.statefulset(of, DEFAULTS, 2, "")["spec"]["template"],
        haproxy.deployment(of, DEFAULTS, "")["spec"]["template"],
    ]


def test_each_monitor_selects_its_pods_and_names_a_port_that_they_have() -> None:
    of = gateway()
    for monitor, pod in zip(pod_monitors(of), pods(of), strict=True):
        selected = monitor["spec"]["selector"]["matchLabels"]
        assert selected.items() <= pod["metadata"]["labels"].items()
        ports = {port["name"] for container in pod["spec"]["containers"] for port in container["ports"]}
        asked = {endpoint["port"] for endpoint in monitor["spec"]["podMetricsEndpoints"]}
        assert asked and asked <= ports


def test_the_auditors_monitor_selects_its_pod_and_names_its_port() -> None:
    of = Gateway.from_manifest(manifest(auditor=AUDITOR))
    assert of.enabled_auditor is not None
    monitor = pod_monitors(of)[-1]
    found = auditor.statefulset(of, of.enabled_auditor, "origin", "key", "", DEFAULTS)["spec"]["template"]
    assert monitor["spec"]["selector"]["matchLabels"].items() <= found["metadata"]["labels"].items()
    [endpoint] = monitor["spec"]["podMetricsEndpoints"]
    assert endpoint["port"] in [port["name"] for port in found["spec"]["containers"][0]["ports"]]


def test_every_series_bears_the_gateways_name() -> None:
    for monitor in pod_monitors(gateway()):
        for endpoint in monitor["spec"]["podMetricsEndpoints"]:
            (relabeling,) = endpoint["relabelings"]
            assert relabeling["targetLabel"] == "gateway"
            assert relabeling["sourceLabels"] == ["__meta_kubernetes_pod_label_proofgate_dev_gateway"]


def test_a_monitor_bears_the_labels_that_prometheus_selects_it_by() -> None:
    for monitor in pod_monitors(gateway(labels={"release": "prometheus", "app.kubernetes.io/name": "mine"})):
        assert monitor["metadata"]["labels"]["release"] == "prometheus"
        assert monitor["metadata"]["labels"]["app.kubernetes.io/name"] == "proofgate"


def test_a_namespace_that_may_read_metrics_reaches_the_metrics_ports_and_no_other() -> None:
    of = gateway(fromNamespaces=["observability"])
    peer = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "observability"}}}
    for policy, ports in (
        (networkpolicy.worker_policy(of, DEFAULTS), [ADMIN_PORT]),
        (networkpolicy.haproxy_policy(of, DEFAULTS), [haproxy.METRICS_PORT, haproxy.AGENT_PORT]),
    ):
        rules = [rule for rule in policy["spec"]["ingress"] if peer in rule.get("from", [])]
        assert [[entry["port"] for entry in rule["ports"]] for rule in rules] == [ports]


def monitored(**monitoring: object) -> World:
    world = World(monitoring=monitoring)
    own = names(world.gateway)
    world.children = {Ref("PodMonitor", own.worker): None, Ref("PodMonitor", own.haproxy): None}
    return world.settle()


def monitors(world: World) -> list[bool]:
    return [live is not None for ref, live in world.children.items() if ref.kind == "PodMonitor"]


def test_a_cluster_that_knows_pod_monitors_gets_both() -> None:
    assert monitors(monitored()) == [True, True]


def test_a_cluster_that_does_not_know_them_gets_none() -> None:
    assert monitors(World().settle()) == []


def test_pod_monitors_that_nobody_wants_any_more_are_removed() -> None:
    world = monitored()
    world.manifest["spec"]["monitoring"] = {"podMonitors": "Never"}
    assert monitors(world.settle()) == [False, False]


def test_a_pod_monitor_of_somebody_else_is_not_taken() -> None:
    world = monitored()
    ref = Ref("PodMonitor", names(world.gateway).worker)
    world.children[ref] = {"kind": "PodMonitor", "metadata": {"name": ref.name, "uid": "theirs"}}
    assert world.condition(ConditionType.CONFIG_VALID)[1] == "NameTaken"
