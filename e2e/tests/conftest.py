"""One operator on a real cluster for all end-to-end tests, and a namespace for each group of tests.

Groups run in parallel, each in one process (`pytest -n 3`). Tests of one group run one after another, and those of the
group `fleet` share its gateway.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from e2e import unkind
from e2e.kubernetes import (
    MADE_BY_TESTS,
    OPERATOR,
    PATIENCE,
    REPOSITORY,
    Namespace,
    clear,
    conditions_of,
    install_operator,
    lab,
    namespaces_of_tests,
    run,
    server,
    wait_until,
)
from e2e.load import Report, SteadyLoad, steady_load
from e2e.operations import Gateway
from e2e.tests import fleet
from e2e.tests.fleet import TENANTS
from e2e.tests.traffic import LOADED, Runner, wait_reachable

#: The variable that `make test-e2e` sets to permit the removal of the namespaces of tests and demonstration.
MAY_CLEAR = "PROOFGATE_E2E_MAY_CLEAR"
#: The variable with the profile of `e2e.unkind` that is applied to the cluster while the tests run.
PROFILE = "PROOFGATE_E2E_PROFILE"
#: The group that runs alone before all others, because it needs a cluster without any earlier operator.
BARE = "bare"
#: The namespace in which the tests of a bare cluster install.
HOUR = Namespace("llm")
#: The groups. The longest starts first, so that the last to start is short.
GROUPS = {
    BARE: ("test_first_hour.py", "test_release_from_a_registry.py"),
    "rollouts": ("test_nobody_notices.py", "test_certificates.py"),
    "platform": ("test_nobody_notices_the_platform.py", "test_deletion.py", "test_volume_ownership.py"),
    "fleet": (
        "test_gateway_becomes_ready.py",
        "test_runbooks.py",
        "test_haproxy_sidecar.py",
        "test_live_configuration.py",
        "test_tenants_keep_their_worker.py",
        "test_limits_move.py",
        "test_what_breaks_is_bounded.py",
        "test_autoscaling.py",
    ),
    "evidence": (
        "test_a_volume_for_each_worker.py",
        "test_auditor.py",
        "test_keeping.py",
    ),
    "night": ("test_night_shift.py",),
    "apart": ("test_one_namespace.py", "test_tenant_objects.py", "test_network_policies.py"),
}
_ORDER = {file: (group, number) for group, files in GROUPS.items() for number, file in enumerate(files)}
#: An open exchange keeps a worker of `ops` running until a test has finished, even on a busy machine.
OPS_TIMEOUTS = {**fleet.TIMEOUTS, "drainSeconds": 280}
_UPSTREAM = REPOSITORY / "examples" / "demo" / "20-mock-upstream.yaml"


class Run:
    """The shared state of one test run's processes: a name, and files that record the progress."""

    def __init__(self, folder: Path, uid: str) -> None:
        self.name = uid[:6]
        self._folder = folder
        folder.mkdir(exist_ok=True)

    @contextmanager
    def alone(self, what: str) -> Iterator[None]:
        """Allows only one process of the run in the block at a time."""
        with (self._folder / f"{what}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def note(self, what: str) -> None:
        """Records that something is done."""
        (self._folder / what).touch()

    def noted(self, what: str) -> bool:
        """Whether it is recorded as done."""
        return (self._folder / what).exists()

    def namespace(self, group: str) -> Namespace:
        """The namespace of a group, which is new for each run."""
        return Namespace(f"proofgate-e2e-{self.name}-{group}")

    def namespaces(self) -> list[str]:
        """The names of all groups' namespaces."""
        return [self.namespace(group).name for group in GROUPS if group != BARE]


@pytest.fixture(scope="session")
def this_run(tmp_path_factory: pytest.TempPathFactory, testrun_uid: str) -> Run:
    """This run. Exits unless the variable permits it, because the tests use the whole cluster."""
    if os.environ.get(MAY_CLEAR) != "yes":
        pytest.exit(f"these tests delete namespaces of the cluster: run `make test-e2e`, or set {MAY_CLEAR}=yes", 4)
    return Run(tmp_path_factory.getbasetemp().parent / f"cluster-{testrun_uid}", testrun_uid)


@pytest.fixture
def bare_cluster(this_run: Run) -> Iterator[None]:
    """A cluster without any trace of the product, except its images."""
    with this_run.alone("operator"):
        remove_everything()
        yield
        remove_everything()


def remove_everything() -> None:
    """Removes the release and the cluster-wide objects that it leaves, which belong to its name and namespace."""
    clear(Namespace("proofgate-demo"))
    run(["helm", "uninstall", "proofgate", "--namespace", HOUR.name, "--ignore-not-found", "--wait"])
    if HOUR.exists():
        HOUR.delete_gateways()
        HOUR.remove()
    found = run(["kubectl", "get", "crd,clusterrole", "--output", "name"]).split()
    kept = [name for name in found if "proofgate.dev" in name or "/proofgate-" in name]
    if kept:
        run(["kubectl", "delete", *kept])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Lets the other groups start after the last test of a bare cluster."""
    this_run: Run | None = getattr(item, "funcargs", {}).get("this_run")
    try:
        yield
    finally:
        last = nextitem is None or group_of(nextitem.path.name) != BARE
        if this_run and last and group_of(item.path.name) == BARE:
            this_run.note(BARE)


@pytest.fixture(scope="session")
def operator(this_run: Run, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """The operator for the namespaces of all groups; the first process installs it with Helm.

    It is not removed after the run; the next run removes it. The requested profile is applied to the cluster during the
    run, which then needs a single process (`make test-unkind`).
    """
    if os.environ.get(PROFILE) and "PYTEST_XDIST_WORKER_COUNT" in os.environ:
        pytest.exit(f"{PROFILE} wants one process: pytest -n0", 4)
    if any(group_of(item.path.name) == BARE for item in request.session.items):
        wait_until(lambda: this_run.noted(BARE), 6 * PATIENCE, "the tests of a bare cluster have ended")
    with this_run.alone("operator"):
        if not this_run.noted("operator"):
            clear(Namespace("proofgate-demo"))
            lab("recycle-volumes")
            OPERATOR.create()
            for name in this_run.namespaces():
                Namespace(name).create(**MADE_BY_TESTS)
            install_operator(this_run.namespaces())
            this_run.note("operator")
    with unkind.profile(os.environ.get(PROFILE) or "plain", this_run.namespaces()):
        yield OPERATOR


@pytest.fixture(scope="module")
def namespace(this_run: Run, operator: Namespace, request: pytest.FixtureRequest) -> Namespace:
    """The namespace of the module's group, with the examples' stand-in upstream."""
    found = this_run.namespace(group_of(request.path.name))
    if not found.get("deployment", "mock-upstream"):
        found.kubectl("apply", "-f", str(_UPSTREAM))
    found.wait_ready("deployment", "mock-upstream")
    return found


@pytest.fixture(scope="module")
def gateway(namespace: Namespace) -> str:
    """The name of a settled gateway with two workers and forty tenants, which the group's other modules also use."""
    restore(namespace, "fleet")
    return "fleet"


@pytest.fixture
def two_workers(namespace: Namespace, gateway: str) -> Iterator[str]:
    """The gateway, which has its manifest's state before and after the test."""
    yield gateway
    restore(namespace, gateway)


@pytest.fixture(scope="module")
def ops(namespace: Namespace, request: pytest.FixtureRequest) -> Gateway:
    """A gateway with two workers, two load balancers and twelve tenants.

    Its name contains the group's name, because draining a node selects pods in all namespaces by the gateway's name.
    """
    name = f"ops-{group_of(request.path.name)}"
    worker = {**fleet.WORKER, "terminationGracePeriodSeconds": 300}
    manifest = fleet.gateway(name, 2, TENANTS[:12], worker=worker, timeouts=OPS_TIMEOUTS)
    namespace.apply(*fleet.secrets(), manifest)
    found = Gateway(namespace, name)
    found.wait_settled(2)
    wait_reachable(namespace, name)
    return found


@pytest.fixture
def under_load(ops: Gateway, tmp_path: Path) -> Runner:
    """Runs an action under a steady load, on a gateway with two workers and two load balancers."""
    # Changes that roll workers stay from earlier tests, because each test makes a change that no other test makes.
    ops.patch({"replicas": 2, "loadBalancer": None, "timeouts": {"connectionAgeSeconds": None, **OPS_TIMEOUTS}})
    ops.wait_settled(2)

    def run(action: Callable[[SteadyLoad], None]) -> Report:
        with steady_load(ops.namespace, ops.name, tmp_path, LOADED) as load:
            action(load)
        return load.report

    return run


def restore(namespace: Namespace, gateway: str) -> None:
    """Creates the group's gateway or restores its manifest's state, and waits until it is settled."""
    there = {item["metadata"]["name"]: item.get("data") for item in namespace.list("secrets")}
    changed = [secret for secret in fleet.secrets() if there.get(secret["metadata"]["name"]) != secret["data"]]
    namespace.apply(*changed, fleet.gateway(gateway, replicas=2))
    Gateway(namespace, gateway).wait_settled(2)
    wait_reachable(namespace, gateway)


def group_of(file: str) -> str:
    """The group of a module. Raises LookupError."""
    return _ORDER[file][0]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts the tests by group, and by module within a group."""
    groups = list(GROUPS)
    places = {file: (groups.index(group), number) for file, (group, number) in _ORDER.items()}
    items.sort(key=lambda item: places[item.path.name])


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Assigns each group to one process, in the order of groups, for any requested distribution."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Grouped(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return group_of(Path(nodeid.partition("::")[0]).name)

    config.option.loadscopereorder = False
    return Grouped(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the cluster's state to the report of a failed test or fixture."""
    report = yield
    if report.when in ("setup", "call") and report.failed:
        try:
            report.sections += what_there_is()
        except (RuntimeError, OSError) as error:
            report.sections.append(("cluster", f"not to be had: {error}"))
    return report


def what_there_is() -> list[tuple[str, str]]:
    """The information for analysing a failure: objects, conditions, events and the operator's log."""
    everywhere = run(["kubectl", "get", "ggw,gwt,pods", "--all-namespaces", "--output", "wide"])
    found = [("cluster", everywhere)]
    for namespace in namespaces_of_tests():
        for gateway in namespace.list("ggw"):
            told = "\n".join(
                f"{condition['type']}={condition['status']} {condition['reason']}: {condition['message']}"
                for condition in conditions_of(gateway).values()
            )
            found.append((f"gateway {namespace.name}/{gateway['metadata']['name']}", told))
    warnings = server().request("GET", "/api/v1/events", query={"fieldSelector": "type=Warning"})["items"]
    told = "\n".join(
        f"{one['involvedObject'].get('name')}: {one['reason']}: {one['message']}" for one in warnings[-30:]
    )
    found.append(("warnings", told))
    found.append(("operator", OPERATOR.logs("app.kubernetes.io/instance=proofgate")[-3000:]))
    return found
