"""The manifests that the chart renders for given values. The tests need only helm."""

import gzip
import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.api import Manifest
from tests.controlplane.conftest import CHART, IMAGES, RELEASE
from tests.controlplane.server import binary

pytestmark = pytest.mark.controlplane

NAME = f"{RELEASE}-proofgate-operator"


def template(*arguments: str, chart: Path = CHART) -> subprocess.CompletedProcess[str]:
    command = [binary("helm"), "template", RELEASE, str(chart), "--namespace", "home", *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def render(*settings: str, **values: Any) -> list[Manifest]:
    """Return the rendered manifests; `settings` are `key=value`, `values` are passed as JSON."""
    arguments = [part for setting in settings for part in ("--set", setting)]
    for key, value in values.items():
        arguments += ["--set-json", f"{key}={json.dumps(value)}"]
    done = template(*IMAGES, *arguments)
    assert done.returncode == 0, done.stderr
    return [manifest for manifest in yaml.safe_load_all(done.stdout) if manifest]


def images(manifests: list[Manifest]) -> dict[str, str]:
    """Return the operator's image and the images that it passes to gateways."""
    (container,) = pod_of(only(manifests, "Deployment"))["containers"]
    given = {entry["name"]: entry["value"] for entry in container["env"] if "IMAGE" in entry["name"]}
    return {"operator": container["image"], **given}


def found(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def only(manifests: list[Manifest], kind: str) -> Manifest:
    (manifest,) = found(manifests, kind)
    return manifest


def pod_of(manifest: Manifest) -> Manifest:
    """Return the pod spec of a pod or of a workload."""
    spec: Manifest = manifest["spec"]
    return spec if manifest["kind"] == "Pod" else spec["template"]["spec"]


@pytest.mark.parametrize(
    ("setting", "complaint"),
    [
        ("workerimage=x", "at '': additional properties 'workerimage' not allowed"),
        ("crds.keeep=true", "at '/crds': additional properties 'keeep' not allowed"),
        (
            "metrics.serviceMonitor.on=true",
            "at '/metrics/serviceMonitor': additional properties 'on' not allowed",
        ),
        ("replicas=0", "at '/replicas': minimum: got 0, want 1"),
        ("replicas=6", "at '/replicas': maximum: got 6, want 5"),
        ("replicas=two", "at '/replicas': got string, want integer"),
        ("crds.keep=often", "at '/crds/keep': got string, want boolean"),
        ("logLevel=loud", "at '/logLevel': value must be one of 'debug', 'info', 'warning', 'error'"),
        ("logFormat=xml", "at '/logFormat': value must be one of 'json', 'text'"),
        ("watchNamespaces={Team}", "at '/watchNamespaces/0': 'Team' does not match pattern"),
        ("extraEnv[0].value=x", "at '/extraEnv/0': missing property 'name'"),
    ],
)
def test_a_value_that_is_unknown_or_out_of_bounds_is_refused(setting: str, complaint: str) -> None:
    refused = template(*IMAGES, "--set", setting)
    assert refused.returncode != 0 and complaint in refused.stderr


def test_an_older_cluster_is_refused() -> None:
    refused = template(*IMAGES, "--kube-version", "1.29.0")
    assert refused.returncode != 0 and "1.30" in refused.stderr


def test_an_upgrade_that_forgets_the_workers_image_rolls_no_gateway_but_fails_with_a_sentence() -> None:
    """Helm resets each value that an upgrade does not set again."""
    refused = template("--set", "operator.image=ghcr.io/team/proofgate-operator:0.2.0")
    assert refused.returncode != 0 and not refused.stdout
    assert "workerImage is not set: set it to the image" in refused.stderr
    assert "--reset-then-reuse-values" in refused.stderr


def test_an_operator_without_an_image_is_refused() -> None:
    refused = template("--set", "workerImage=ghcr.io/team/proofgate-worker:0.2.0")
    assert refused.returncode != 0 and "operator.image is not set: set it to the image" in refused.stderr


@pytest.mark.parametrize("image", ["REGISTRY/proofgate-worker:0.1.0", "…", "<image>", "ghcr.io/team/worker:"])
def test_a_placeholder_is_no_image(image: str) -> None:
    refused = template(*IMAGES, "--set-string", f"workerImage={image}")
    assert refused.returncode != 0 and "/workerImage" in refused.stderr


def test_an_image_without_a_tag_is_that_of_the_charts_release() -> None:
    release = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    found = images(render("operator.image=localhost:5000/operator", "workerImage=ghcr.io/team/worker"))
    assert found["operator"] == f"localhost:5000/operator:{release}"
    assert found["WORKER_IMAGE"] == f"ghcr.io/team/worker:{release}"
    digest = f"sha256:{'0' * 64}"
    found = images(render("operator.image=localhost:5000/operator:next", f"workerImage=worker@{digest}"))
    assert found["operator"] == "localhost:5000/operator:next"
    assert found["WORKER_IMAGE"] == f"worker@{digest}"


def test_haproxy_is_the_official_image_unless_another_one_is_given() -> None:
    assert images(render())["HAPROXY_IMAGE"] == "docker.io/library/haproxy:3.2"
    assert images(render("haproxyImage=mirror/haproxy:3.2"))["HAPROXY_IMAGE"] == "mirror/haproxy:3.2"
    assert template(*IMAGES, "--set", "haproxyImage=").returncode != 0


def test_the_published_chart_installs_without_a_value(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(binary('helm')).parent}:{os.environ['PATH']}"}
    command = [str(CHART.parents[1] / "setup" / "package-chart"), "ghcr.io/team", str(tmp_path)]
    subprocess.run(command, env=environment, check=True, capture_output=True)
    (package,) = tmp_path.glob("proofgate-operator-*.tgz")
    done = template(chart=package)
    assert done.returncode == 0, done.stderr
    release = yaml.safe_load((CHART / "Chart.yaml").read_text())["appVersion"]
    found = images([manifest for manifest in yaml.safe_load_all(done.stdout) if manifest])
    assert found["operator"] == f"ghcr.io/team/proofgate-operator:{release}"
    assert found["WORKER_IMAGE"] == f"ghcr.io/team/proofgate-worker:{release}"


def test_a_chart_that_is_packaged_with_digests_names_its_images_by_them(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(binary('helm')).parent}:{os.environ['PATH']}"}
    command = [str(CHART.parents[1] / "setup" / "package-chart"), "ghcr.io/team", str(tmp_path)]
    worker, operator = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"
    assert (
        subprocess.run([*command, "latest", operator], env=environment, capture_output=True).returncode == 1
    )
    subprocess.run([*command, worker, operator], env=environment, check=True, capture_output=True)
    (package,) = tmp_path.glob("proofgate-operator-*.tgz")
    done = template(chart=package)
    assert done.returncode == 0, done.stderr
    found = images([manifest for manifest in yaml.safe_load_all(done.stdout) if manifest])
    assert found["operator"] == f"ghcr.io/team/proofgate-operator@{operator}"
    assert found["WORKER_IMAGE"] == f"ghcr.io/team/proofgate-worker@{worker}"


def test_haproxy_may_be_given_by_digest() -> None:
    image = f"docker.io/library/haproxy:3.2@sha256:{'3' * 64}"
    assert images(render(f"haproxyImage={image}"))["HAPROXY_IMAGE"] == image
    assert template(*IMAGES, "--set", "haproxyImage=haproxy@sha256:1234").returncode != 0


def test_the_operator_logs_in_the_form_that_is_given() -> None:
    (container,) = pod_of(only(render("logFormat=text"), "Deployment"))["containers"]
    assert {"name": "LOG_FORMAT", "value": "text"} in container["env"]


def test_two_operators_elect_one_that_leads() -> None:
    manifests = render()
    deployment = only(manifests, "Deployment")
    assert deployment["spec"]["replicas"] == 2
    env = {entry["name"]: entry for entry in pod_of(deployment)["containers"][0]["env"]}
    assert env["LEADER_ELECTION"]["value"] == "true"
    (own,) = (role for role in found(manifests, "Role") if role["metadata"]["name"] == f"{NAME}-own")
    named = [rule for rule in own["rules"] if rule.get("resourceNames") == [env["LEASE_NAME"]["value"]]]
    assert own["metadata"]["namespace"] == "home"
    assert any(rule["resources"] == ["leases"] and "update" in rule["verbs"] for rule in named)


def test_a_single_operator_has_no_disruption_budget_that_would_block_a_drain() -> None:
    assert found(render(), "PodDisruptionBudget")
    assert not found(render("replicas=1"), "PodDisruptionBudget")
    assert not found(render("podDisruptionBudget.enabled=false"), "PodDisruptionBudget")


def test_every_watched_namespace_gets_a_role_and_nothing_is_cluster_wide() -> None:
    manifests = render("watchNamespaces={a,b}", "crds.enabled=false")
    places = {(role["metadata"]["namespace"], role["metadata"]["name"]) for role in found(manifests, "Role")}
    assert places == {("a", NAME), ("b", NAME), ("home", f"{NAME}-own")}
    assert not [manifest for manifest in manifests if manifest["kind"].startswith("Cluster")]
    env = pod_of(only(manifests, "Deployment"))["containers"][0]["env"]
    assert {"name": "WATCH_NAMESPACES", "value": "a,b"} in env


def test_a_cluster_wide_operator_has_one_cluster_role_and_a_role_for_its_own_lease() -> None:
    manifests = render("clusterWide=true", "crds.aggregateRoles=false")
    assert [role["metadata"]["name"] for role in found(manifests, "ClusterRole")] == [f"home-{NAME}"]
    assert [role["metadata"]["name"] for role in found(manifests, "Role")] == [f"{NAME}-own"]
    env = pod_of(only(manifests, "Deployment"))["containers"][0]["env"]
    assert {"name": "WATCH_NAMESPACES", "value": ""} in env


def test_the_security_model_names_what_the_operator_may_do_in_a_namespace_and_no_more() -> None:
    granted: dict[str, set[str]] = {}
    (role,) = (role for role in found(render(), "Role") if role["metadata"]["name"] == NAME)
    for rule in role["rules"]:
        for resource in rule["resources"]:
            granted.setdefault(resource, set()).update(rule["verbs"])
    text = (CHART.parents[1] / "docs" / "concepts" / "security-model.md").read_text()
    rows = text.partition("*RBAC.*")[2].partition("\n\n**")[0].splitlines()
    named: dict[str, set[str]] = {}
    for resources, verbs in (row.split("|")[1:3] for row in rows if row.startswith("| `")):
        for resource in re.findall(r"`([^`]+)`", resources):
            words = set(re.findall(r"\b[a-z]+\b", re.sub(r" of `[^`]+`", "", verbs)))
            assert resource not in named, resource
            named[resource] = words
    assert named == granted


def rules_of(manifests: list[Manifest], namespace: str) -> set[tuple[str, str]]:
    """Return the operator's permissions in a namespace, as resource and verb."""
    roles = [role for role in found(manifests, "Role") if role["metadata"]["namespace"] == namespace]
    rules = [rule for role in roles for rule in role["rules"]]
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def test_in_a_namespace_of_tenants_the_operator_reads_two_kinds_and_tells_of_one() -> None:
    manifests = render("watchNamespaces={home,both}", "tenantNamespaces={team,both}", "crds.enabled=false")
    read = {(kind, verb) for kind in ("gatewaytenants", "secrets") for verb in ("get", "list", "watch")}
    told = {("gatewaytenants/status", verb) for verb in ("get", "patch")}
    assert rules_of(manifests, "team") == read | told
    assert ("statefulsets", "create") in rules_of(manifests, "both"), (
        "a namespace with gateways has all permissions"
    )
    bound = {binding["metadata"]["namespace"] for binding in found(manifests, "RoleBinding")}
    assert bound == {"home", "team", "both"}
    assert not [manifest for manifest in manifests if manifest["kind"].startswith("Cluster")]
    env = pod_of(only(manifests, "Deployment"))["containers"][0]["env"]
    assert {"name": "TENANT_NAMESPACES", "value": "team,both"} in env


def test_namespaces_of_tenants_alone_leave_the_release_its_own_for_gateways() -> None:
    manifests = render("tenantNamespaces={team}", "crds.enabled=false")
    assert ("statefulsets", "create") in rules_of(manifests, "home")
    assert ("secrets", "create") not in rules_of(manifests, "team")


def test_namespaces_by_their_labels_cost_their_list_and_nothing_else() -> None:
    manifests = render("listNamespaces=true", "watchNamespaces={a}", "crds.enabled=false")
    role = only(manifests, "ClusterRole")
    assert role["rules"] == [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]
    assert only(manifests, "ClusterRoleBinding")["roleRef"]["name"] == role["metadata"]["name"]


def test_two_thousand_namespaces_of_tenants_are_one_release(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    names = [f"{'team':-<40}{number:05}" for number in range(2000)]
    values.write_text(json.dumps({"tenantNamespaces": names}))
    rendered = template(*IMAGES, "--values", str(values)).stdout
    assert rendered.count("kind: RoleBinding") == 2002
    # Helm stores a release in a Secret of at most 1 MiB, as base64 within base64.
    assert len(gzip.compress(rendered.encode())) * 16 / 9 < 1 << 20
    values.write_text(json.dumps({"tenantNamespaces": names + [f"more-{name}" for name in names]}))
    refused = template(*IMAGES, "--values", str(values))
    assert refused.returncode != 0 and "4000 namespaces are too many for one release" in refused.stderr


def test_watched_namespaces_and_cluster_wide_exclude_each_other() -> None:
    for lists in ("watchNamespaces={team}", "tenantNamespaces={team}"):
        refused = template(*IMAGES, "--set", "clusterWide=true", "--set", lists)
        assert refused.returncode != 0 and "Namespaces" in refused.stderr


def test_no_role_reads_secrets_of_a_namespace_that_is_not_served() -> None:
    for role in found(render("watchNamespaces={team}"), "Role"):
        secrets = [rule for rule in role["rules"] if "secrets" in rule["resources"]]
        assert bool(secrets) == (role["metadata"]["namespace"] == "team")


def test_the_clusters_own_roles_read_and_write_gateways_and_never_their_status() -> None:
    roles = {role["metadata"]["name"]: role for role in found(render(), "ClusterRole")}
    label = "rbac.authorization.k8s.io/aggregate-to-"
    view, edit = roles["proofgate-governancegateways-view"], roles["proofgate-governancegateways-edit"]
    assert {f"{label}{name}" for name in ("view", "edit", "admin")} <= set(view["metadata"]["labels"])
    assert f"{label}view" not in edit["metadata"]["labels"]
    assert {verb for rule in view["rules"] for verb in rule["verbs"]} == {"get", "list", "watch"}
    assert all("status" not in resource for rule in edit["rules"] for resource in rule["resources"])


def test_every_container_is_restricted_and_cannot_write_its_root() -> None:
    for manifest in render():
        if manifest["kind"] not in ("Deployment", "Job", "Pod"):
            continue
        pod = pod_of(manifest)
        assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]
            assert context["capabilities"] == {"drop": ["ALL"]}


def test_the_crd_is_kept_unless_it_is_given_up() -> None:
    policy = "helm.sh/resource-policy"
    kept, given_up = (
        found(render(*given), "CustomResourceDefinition") for given in ((), ("crds.keep=false",))
    )
    assert len(kept) == len(given_up) == 2
    assert all(crd["metadata"]["annotations"][policy] == "keep" for crd in kept)
    assert not any(policy in crd["metadata"].get("annotations", {}) for crd in given_up)
    assert not found(render("crds.enabled=false"), "CustomResourceDefinition")


def test_the_rights_on_gateways_are_kept_with_the_crd() -> None:
    policy = "helm.sh/resource-policy"

    def policies(*settings: str) -> list[str | None]:
        roles = found(render(*settings), "ClusterRole")
        return [role["metadata"].get("annotations", {}).get(policy) for role in roles]

    kept = policies()
    assert kept and set(kept) == {"keep"}
    assert policies("crds.keep=false") == [None] * len(kept)


def test_the_platform_may_choose_who_pods_run_as() -> None:
    deployment = only(render("podSecurity=Platform"), "Deployment")
    security = pod_of(deployment)["securityContext"]
    assert security == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    (container,) = pod_of(deployment)["containers"]
    assert {"name": "POD_SECURITY", "value": "Platform"} in container["env"]


def test_secrets_for_pulling_reach_gateways_pods() -> None:
    names = [{"name": "registry"}, {"name": "mirror"}]
    (container,) = pod_of(only(render(imagePullSecrets=names), "Deployment"))["containers"]
    assert {"name": "IMAGE_PULL_SECRETS", "value": "registry,mirror"} in container["env"]


def test_where_and_how_the_operator_runs_can_be_chosen() -> None:
    values: dict[str, Any] = {
        "nodeSelector": {"pool": "infra"},
        "tolerations": [{"key": "infra", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "system-cluster-critical",
        "imagePullSecrets": [{"name": "registry"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
        ],
    }
    deployment = only(
        render(
            **values,
            podLabels={"team": "platform", "app.kubernetes.io/name": "mine"},
            podAnnotations={"note": "a"},
            extraEnv=[{"name": "HTTPS_PROXY", "value": "http://proxy"}],
            extraVolumes=[{"name": "ca", "configMap": {"name": "ca"}}],
            extraVolumeMounts=[{"name": "ca", "mountPath": "/ca"}],
        ),
        "Deployment",
    )
    pod = pod_of(deployment)
    assert {key: pod[key] for key in values} == values
    metadata = deployment["spec"]["template"]["metadata"]
    assert metadata["labels"]["team"] == "platform" and metadata["annotations"] == {"note": "a"}
    # A user's labels do not replace the chart's labels of the selector.
    assert metadata["labels"]["app.kubernetes.io/name"] == "proofgate-operator"
    (container,) = pod["containers"]
    assert {"name": "HTTPS_PROXY", "value": "http://proxy"} in container["env"]
    assert {"name": "ca", "mountPath": "/ca"} in container["volumeMounts"]
    assert {"name": "ca", "configMap": {"name": "ca"}} in pod["volumes"]


def test_operators_spread_over_nodes_by_themselves() -> None:
    deployment = only(render(), "Deployment")
    (constraint,) = pod_of(deployment)["topologySpreadConstraints"]
    assert constraint["topologyKey"] == "kubernetes.io/hostname"
    assert constraint["labelSelector"] == deployment["spec"]["selector"]


def test_only_monitoring_reaches_the_operator() -> None:
    prometheus = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    policy = only(render(networkPolicy={"from": [prometheus]}), "NetworkPolicy")
    (rule,) = policy["spec"]["ingress"]
    assert prometheus in rule["from"] and len(rule["from"]) == 2
    assert not found(render("networkPolicy.enabled=false"), "NetworkPolicy")


def test_neither_the_job_nor_the_test_counts_as_an_operator() -> None:
    manifests = render()
    selected = only(manifests, "Deployment")["spec"]["selector"]["matchLabels"].items()
    assert not selected <= only(manifests, "Pod")["metadata"]["labels"].items()


def test_uninstalling_needs_nothing_to_run() -> None:
    """The chart has no hook whose image might be missing: a release can be uninstalled in any state."""
    hooks = [manifest["metadata"].get("annotations", {}).get("helm.sh/hook") for manifest in render()]
    assert {hook for hook in hooks if hook} <= {"test"}


def test_a_runbook_is_a_link_without_a_word() -> None:
    rule = only(render("metrics.prometheusRule.enabled=true"), "PrometheusRule")
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
    assert rule["spec"]["groups"] == alerts["groups"]
    assert template(*IMAGES, "--set", "metrics.prometheusRule.runbookBaseURL=").returncode != 0


def test_monitoring_is_made_on_request_and_as_prometheus_and_grafana_select_it() -> None:
    kinds = {manifest["kind"] for manifest in render()}
    assert not kinds & {"ServiceMonitor", "PrometheusRule", "ConfigMap"}
    manifests = render(
        metrics={
            "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
            "prometheusRule": {
                "enabled": True,
                "labels": {"release": "prometheus"},
                "runbookBaseURL": "https://runbooks.example.com",
            },
            "dashboards": {"enabled": True, "annotations": {"grafana_folder": "LLM"}},
        }
    )
    monitor, rule = only(manifests, "ServiceMonitor"), only(manifests, "PrometheusRule")
    assert monitor["metadata"]["labels"]["release"] == rule["metadata"]["labels"]["release"] == "prometheus"
    service = only(manifests, "Service")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"][0]["port"] == service["spec"]["ports"][0]["name"]
    rules = [each for group in rule["spec"]["groups"] for each in group["rules"]]
    # The other rules record series for burn rates.
    for alert in (each for each in rules if "alert" in each):
        url = alert["annotations"]["runbook_url"]
        assert url == f"https://runbooks.example.com/{alert['alert']}.md"
        # Helm must not replace Prometheus' own template expressions.
        assert not re.search(r"<no value>", alert["annotations"]["summary"])
    for dashboard in found(manifests, "ConfigMap"):
        assert dashboard["metadata"]["labels"]["grafana_dashboard"] == "1"
        (text,) = dashboard["data"].values()
        assert json.loads(text)["panels"]
