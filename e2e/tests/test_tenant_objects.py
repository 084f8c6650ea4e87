"""Tenants as separate objects behind one gateway, each in its team's namespace."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import tutorial
from e2e.cluster import toolchain
from e2e.kubernetes import MADE_BY_TESTS, PATIENCE, REPOSITORY, Namespace, Object, environment, wait_until
from e2e.lab_network import exchange, inside
from e2e.load import steady_load
from e2e.operations import Gateway, upgrade_operator
from e2e.runbooks import ALERTS
from e2e.tests import fleet
from e2e.tests.conftest import Run
from e2e.tests.fleet import API_VERSION, MODEL, key_of
from e2e.tests.traffic import ask, records, wait_reachable

NAME = "shared"
ACME = Namespace("proofgate-e2e-acme")
GLOBEX = Namespace("proofgate-e2e-globex")
#: A user who has only the chart's role for tenants, in the namespace of acme.
ANA = "ana"
#: The daily requests of the second team's plan.
TRIAL = 10


def manifest() -> Object:
    """A gateway without tenants in its own spec, with two plans, for namespaces with a label."""
    return fleet.gateway(
        NAME,
        1,
        tenants=(),
        loadBalancer=fleet.ONE_BALANCER,
        ledger={"volume": {"storageClassName": "lab-shared", "size": "1Gi", "retainPolicy": "Delete"}},
        plans=[
            {"name": "gold", "models": [MODEL]},
            {"name": "trial", "models": [MODEL], "limits": {"requestsPerDay": TRIAL}},
        ],
        allowedTenants={"namespaces": {"from": "Selector", "selector": {"matchLabels": {"llm": "allowed"}}}},
    )


def tenant(namespace: Namespace, name: str, **spec: Any) -> Object:
    """A tenant with two keys in a Secret of its namespace; `spec` adds to its fields or replaces them."""
    return {
        "apiVersion": API_VERSION,
        "kind": "GatewayTenant",
        "metadata": {"name": name},
        "spec": {
            "gatewayRef": {"name": NAME, "namespace": namespace.name},
            "plan": "gold",
            "apiKeys": fleet.api_keys(name),
            **spec,
        },
    }


def as_ana(*arguments: str, stdin: str | None = None) -> str:
    """Kubectl in the namespace of acme, with Ana's rights."""
    return ACME.kubectl(*arguments, f"--as={ANA}", stdin=stdin)


def told(team: Namespace, name: str, kind: str) -> tuple[str, str]:
    """The status and reason of a tenant's condition; empty if it does not exist yet."""
    condition = team.conditions(name, "gwt").get(kind, {})
    return condition.get("status", ""), condition.get("reason", "")


def is_let_in(namespace: Namespace, key: str) -> None:
    """Waits until a key is accepted."""
    wait_until(lambda: ask(namespace, NAME, key) == 200, PATIENCE, "the key is let in")


def is_refused(namespace: Namespace, key: str) -> None:
    """Waits until a key is refused."""
    wait_until(lambda: ask(namespace, NAME, key) == 401, PATIENCE, "the key is refused")


@pytest.fixture(scope="module")
def shared(this_run: Run, namespace: Namespace) -> Iterator[Gateway]:
    """The gateway, which is Ready because of the tenant of globex.

    The operator serves the whole cluster during this time, because only then it may read the labels of namespaces.
    """
    teams = (ACME, GLOBEX)
    for team in teams:
        if team.exists():
            team.remove()
    ACME.create(llm="allowed", **MADE_BY_TESTS)
    GLOBEX.create(llm="allowed", **MADE_BY_TESTS)
    ACME.kubectl("create", "rolebinding", ANA, "--clusterrole=proofgate-gatewaytenants-edit", f"--user={ANA}")
    found = Gateway(namespace, NAME)
    try:
        upgrade_operator([], clusterWide=True)
        namespace.apply(manifest())
        GLOBEX.apply(fleet.secret("globex"), tenant(namespace, "globex"))
        found.wait_settled(1)
        wait_reachable(namespace, NAME)
        is_let_in(namespace, key_of("globex"))
        yield found
    finally:
        namespace.delete("ggw", NAME, wait=False)
        for team in teams:
            team.remove(wait=False)
        upgrade_operator(this_run.namespaces())


@pytest.fixture
def acme(namespace: Namespace, shared: Gateway) -> Iterator[str]:
    """The name of acme's tenant in records. Ana has created it, and its key is accepted."""
    ACME.apply(fleet.secret("acme"))
    as_ana("apply", "-f", "-", stdin=json.dumps(tenant(namespace, "acme")))
    try:
        is_let_in(namespace, key_of("acme"))
        yield f"{ACME.name}/acme"
    finally:
        ACME.delete("gwt", "acme")
        ACME.delete("secret", "acme-keys")
        # Otherwise the remains of this tenant would let in the next one.
        is_refused(namespace, key_of("acme"))
        is_refused(namespace, key_of("acme", 1))


def test_a_team_that_may_write_tenants_alone_attaches_one_whose_records_name_it(
    namespace: Namespace, acme: str
) -> None:
    wait_until(lambda: told(ACME, "acme", "Programmed") == ("True", "Programmed"), PATIENCE, "it is told so")
    assert told(ACME, "acme", "Accepted") == ("True", "Accepted")
    assert told(ACME, "acme", "KeysValid") == ("True", "Valid")
    assert (ACME.get("gwt", "acme") or {})["status"]["tenant"] == acme

    def recorded() -> bool:
        assert ask(namespace, NAME, key_of("globex")) == 200
        found = records(namespace, NAME)
        admitted = {record["tenant"] for record in found if record["kind"] == "admission"}
        return admitted == {acme, f"{GLOBEX.name}/globex"}

    wait_until(recorded, PATIENCE, "the ledger names both tenants and nobody else")


def shards(namespace: Namespace) -> dict[str, str]:
    """The tenants' data in the Secrets that workers and HAProxy read, by the Secret's name."""
    found = namespace.list("secrets", f"proofgate.dev/gateway={NAME}")
    return {
        item["metadata"]["name"]: "".join(base64.b64decode(text).decode() for text in item["data"].values())
        for item in found
        if item["metadata"]["name"].startswith(f"{NAME}-tenants-")
    }


def test_no_key_leaves_the_namespace_of_its_team_but_by_its_digest(namespace: Namespace, acme: str) -> None:
    written = "".join(shards(namespace).values())
    assert acme in written
    assert not any(key_of(name, number) in written for name in ("acme", "globex") for number in (0, 1))


def test_a_key_that_is_taken_out_of_its_secret_is_refused_while_every_other_one_is_let_in(
    namespace: Namespace, acme: str, tmp_path: Path
) -> None:
    is_let_in(namespace, key_of("acme", 1))
    with steady_load(namespace, NAME, tmp_path, [key_of("globex")], clients=2) as load:
        patch = json.dumps([{"op": "remove", "path": "/data/first"}])
        ACME.kubectl("patch", "secret", "acme-keys", "--type=json", "--patch", patch)
        is_refused(namespace, key_of("acme"))
        assert ask(namespace, NAME, key_of("acme", 1)) == 200
    assert not load.report.failed and not load.report.broken, (load.report.failed + load.report.broken)[:3]
    wait_until(lambda: told(ACME, "acme", "KeysValid") == ("False", "SecretInvalid"), PATIENCE, "it is told so")
    assert told(ACME, "acme", "Accepted") == ("True", "Accepted")


def trial_used(namespace: Namespace, tenant: str) -> tuple[str, float]:
    """The worker's metrics, and the number of the day's requests of the trial plan that a tenant has used."""
    [pod] = namespace.list("pod", f"proofgate.dev/gateway={NAME},app.kubernetes.io/component=worker")
    exposition = inside(exchange, "GET", f"http://{pod['status']['podIP']}:9090/metrics").text
    series = rf'^proofgate_limit_used{{(?=.*limit="requestsPerDay")(?=.*tenant="{re.escape(tenant)}").*}} (\S+)$'
    found = re.search(series, exposition, re.MULTILINE)
    return exposition, float(found[1]) if found else 0


def wait_used(namespace: Namespace, tenant: str, requests: float) -> str:
    """Waits until this number of requests is used; returns the worker's metrics. A scrape may have older values."""
    found = ("", 0.0)

    def is_used() -> bool:
        nonlocal found
        found = trial_used(namespace, tenant)
        return found[1] == requests

    wait_until(is_used, PATIENCE, f"{requests} requests are used")
    return found[0]


def firing(exposition: str, tenant: str, folder: Path) -> set[str]:
    """The chart's budget alerts that fire for a tenant with these metrics, by promtool."""
    of_pod = f'namespace="{NAME}",gateway="{NAME}",pod="{NAME}-worker-0",'
    limits = re.findall(r"^(proofgate_(?:shared_)?limit_\w+){(.*)} (\S+)$", exposition, re.MULTILINE)
    series = [{"series": f"{name}{{{of_pod}{labels}}}", "values": f"{value}x10"} for name, labels, value in limits]
    fires: set[str] = set()
    for alert in ("ProofgateBudgetNearlyUsed", "ProofgateBudgetUsed"):
        wanted = {"labels": "{}", "value": 1}
        query = f'count(ALERTS{{alertname="{alert}",alertstate="firing",tenant="{tenant}"}})'
        asked = {"expr": query, "eval_time": "5m", "exp_samples": [wanted]}
        case = {"interval": "1m", "input_series": series, "promql_expr_test": [asked]}
        (folder / "case.yaml").write_text(yaml.safe_dump({"rule_files": [str(ALERTS)], "tests": [case]}))
        tested = subprocess.run([toolchain.binary("promtool"), "test", "rules", folder / "case.yaml"], check=False)
        fires |= {alert} if tested.returncode == 0 else set()
    return fires


def test_a_second_team_with_a_budget_is_warned_of_at_80_percent_and_refused_at_100(
    namespace: Namespace, shared: Gateway, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    if 86_400 - time.time() % 86_400 < 2 * PATIENCE:
        pytest.skip("the day ends meanwhile, and with it what is used of its requests")
    toolchain.ensure([toolchain.PROMTOOL])
    team, tenant = Namespace("proofgate-e2e-initech"), "proofgate-e2e-initech/acme"
    if team.exists():
        team.remove()
    team.create(llm="allowed", **MADE_BY_TESTS)
    began = time.monotonic()
    try:
        page = (REPOSITORY / "docs" / "how-to" / "add-a-team.md").read_text()
        example = (REPOSITORY / "examples" / "tenant.yaml").read_text()
        filled_in = {
            "{name: llm, namespace: llm}": f"{{name: {NAME}, namespace: {namespace.name}}}",
            "gold\n": "trial\n",
        }
        (tmp_path / "tenant.yaml").write_text(tutorial.replaced(example, filled_in))
        commands = tutorial.script("3. Give the team rights and a quota", page)
        commands += tutorial.script("4. The team creates its tenant", page)
        commands = commands.replace("team-acme", team.name).replace("examples/tenant.yaml", "tenant.yaml")
        script = ["bash", "-euo", "pipefail", "-c", commands]
        done = subprocess.run(script, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stdout + done.stderr

        key = (tmp_path / "acme.key").read_text()
        is_let_in(namespace, key)
        for _ in range(int(TRIAL * 0.8) - 1):
            assert ask(namespace, NAME, key) == 200
        exposition = wait_used(namespace, tenant, TRIAL * 0.8)
        assert firing(exposition, tenant, tmp_path) == {"ProofgateBudgetNearlyUsed"}
        for _ in range(TRIAL - int(TRIAL * 0.8)):
            assert ask(namespace, NAME, key) == 200
        assert ask(namespace, NAME, key) == 429
        exposition = wait_used(namespace, tenant, TRIAL)
        assert firing(exposition, tenant, tmp_path) == {"ProofgateBudgetUsed"}
        assert ask(namespace, NAME, key_of("globex")) == 200, "other tenants notice nothing"
        record_property("seconds", round(time.monotonic() - began))
    finally:
        team.remove(wait=False)
