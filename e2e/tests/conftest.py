"""One operator and one gateway on a real cluster, for all end-to-end tests."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest

from e2e.kubernetes import (
    OPERATOR,
    REPOSITORY,
    CommandError,
    Namespace,
    Object,
    clear,
    install_operator,
    run,
    wait_until,
)
from e2e.tests import fleet
from e2e.tests.traffic import wait_reachable

GATEWAYS = Namespace("proofgate-e2e")
#: What `make test-e2e` says: whoever has the cluster may lose the namespaces of the tests and of the demonstration.
MAY_CLEAR = "PROOFGATE_E2E_MAY_CLEAR"


@pytest.fixture(scope="session")
def operator() -> Iterator[Namespace]:
    """The operator, installed by helm, serving the namespace of the tests."""
    if os.environ.get(MAY_CLEAR) != "yes":
        pytest.exit(f"these tests delete namespaces of the cluster: run `make test-e2e`, or set {MAY_CLEAR}=yes", 4)
    clear(GATEWAYS, Namespace("proofgate-demo"))
    OPERATOR.create()
    GATEWAYS.create()
    install_operator([GATEWAYS.name])
    yield OPERATOR
    clear(GATEWAYS)


@pytest.fixture(scope="session")
def namespace(operator: Namespace) -> Namespace:
    """The namespace of the gateways, with the examples' stand-in upstream in it."""
    GATEWAYS.kubectl("apply", "-f", str(REPOSITORY / "examples" / "demo" / "20-mock-upstream.yaml"))
    GATEWAYS.kubectl("rollout", "status", "deployment/mock-upstream", "--timeout", "90s")
    return GATEWAYS


@pytest.fixture(scope="session")
def gateway(namespace: Namespace) -> Iterator[str]:
    """The name of a Ready gateway with two workers and forty tenants."""
    namespace.apply(*fleet.secrets(), fleet.gateway("fleet", replicas=2))
    wait_until(lambda: namespace.is_ready("fleet", 2), 120, "the gateway is Ready")
    wait_reachable(namespace, "fleet")
    yield "fleet"


@pytest.fixture
def two_workers(namespace: Namespace, gateway: str) -> Iterator[str]:
    """The gateway, with two ready workers before and after the test."""
    yield gateway
    namespace.kubectl("scale", f"ggw/{gateway}", "--replicas=2")
    wait_until(lambda: namespace.is_ready(gateway, 2), 120, "the gateway has its two workers again")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The first hour comes first: it begins and ends with a cluster that has never seen an operator."""
    items.sort(key=lambda item: item.path.name != "test_first_hour.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds to the report of a test that failed, or could not begin, what the cluster looked like."""
    report = yield
    if report.when in ("setup", "call") and report.failed:
        try:
            everywhere = run(["kubectl", "get", "ggw,gwt,pods", "--all-namespaces", "--output", "wide"])
            report.sections.append(("cluster", everywhere))
            for found in GATEWAYS.list("ggw"):
                told = "\n".join(
                    f"{condition['type']}={condition['status']} {condition['reason']}: {condition['message']}"
                    for condition in conditions_of(found).values()
                )
                report.sections.append((f"gateway {found['metadata']['name']}", told))
            report.sections.append(("operator", OPERATOR.logs("app.kubernetes.io/instance=proofgate")[-2000:]))
        except (CommandError, OSError) as error:
            report.sections.append(("cluster", f"not to be had: {error}"))
    return report


def conditions_of(found: Object) -> dict[str, Object]:
    """A gateway's conditions by type."""
    return {condition["type"]: condition for condition in found.get("status", {}).get("conditions", [])}
