"""Every build, check and suite of the project, in the order in which they begin where the machine has room."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from suites.steps import PYTHON, ROOT, Command, Pytest, RustTests, Step


def make(target: str) -> Command:
    """A target of the Makefile, which people also run by hand. Its requirements have been built before."""
    return Command(("make", target, "PROOFGATE_SUITES=yes"))


GATEWAY = Pytest(folder=ROOT / "gateway")
OPERATOR = Pytest(folder=ROOT / "operator")
HAPROXY_LTS = Pytest(
    folder=ROOT / "operator",
    options=("-m", "haproxy"),
    variables=(("PROOFGATE_HAPROXY", "./setup/haproxy-lts"),),
)
CONTROL_PLANE = Pytest(
    folder=ROOT / "operator",
    options=("-m", "controlplane"),
    variables=(("PROOFGATE_TOOLS_PATH", "python3 -m e2e.cluster tools kubernetes etcd helm promtool | paste -sd:"),),
)
WORKER = Pytest(("e2e/worker", "--ignore=e2e/worker/test_clients.py"))
# A separate file for each client would start a separate gateway for each: any process takes any of them.
CLIENTS = Pytest(("e2e/worker/test_clients.py",), spread="load")
# Tests that wait for a retry run only in `make test-agents`.
AGENTS = Pytest(("e2e/agents",), processes=1, options=("-m", "sample", "-k", "not retries"))
ONE_WORKER = Pytest(("e2e/worker/test_exchange.py",), processes=1)
#: Tests outside the product's parts: of the tests' own tools, of benchmarks, examples and set-up.
TOOLS = Pytest(
    (
        "suites/tests",
        "setup/tests",
        "e2e/cluster/tests",
        "e2e/garden/tests",
        "e2e/unkind/tests",
        "bench",
        "examples/policies",
    ),
    # Two folders contain a file of the same name.
    options=("--import-mode=importlib",),
)
#: A release of the wheels that the other suites tested; its files share one release and one registry.
RELEASE = Pytest(("e2e/release",), processes=1)
#: On a cluster of two nodes; e2e/tests/conftest.py gives groups of files to the processes.
CLUSTER = Pytest(("e2e/tests",), processes=5)

STEPS = (
    Step("setup", "build", Command(("make", "setup")), cores=2),
    Step("extension", "build", Command(("make", "develop")), ("setup",)),
    Step("cluster-binaries", "build", make("cluster-binaries"), ("setup",)),
    Step("images", "build", make("images"), ("extension", "cluster-binaries")),
    Step("go-binaries", "build", make("go-binaries"), ("setup",)),
    Step("node-clients", "build", make("node-clients"), ("setup",), cores=0.5),
    Step("agents-sdk", "build", make("agents-sdk"), ("setup",), cores=0.5),
    Step("rust-binaries", "build", Command((PYTHON, "-m", "suites.rust", "--build")), ("setup",)),
    Step("promtool", "build", make("promtool"), ("setup",)),
    Step("registry", "build", make("registry"), ("setup",)),
    Step("release-tools", "build", make("release-tools"), ("registry",)),
    # The longest step is first, so that the last one to start is short. A step that mostly waits runs beside two
    # others.
    Step(
        "cluster", "tests", CLUSTER, ("images", "registry"), cores=0.5, environment={"PROOFGATE_E2E_MAY_CLEAR": "yes"},
        finally_=("make", "lab-down"),
    ),
    Step("worker", "tests", WORKER, ("extension", "go-binaries", "promtool"), cores=0.75),
    Step("control-plane", "tests", CONTROL_PLANE, ("extension", "cluster-binaries", "promtool"), cores=0.75),
    Step("release", "tests", RELEASE, ("images", "release-tools"), cores=0.75),
    Step("clients", "tests", CLIENTS, ("extension", "node-clients"), cores=0.75),
    Step("operator", "tests", OPERATOR, ("extension",), cores=0.75),
    # A fixed seed gives the same result for the same code; `make properties` and `make hunt-flakes` use other seeds.
    Step("rust", "tests", RustTests(), ("rust-binaries",), cores=0.75, environment={"PROPTEST_RNG_SEED": "14"}),
    Step("gateway", "tests", GATEWAY, ("extension",), cores=0.75),
    Step("clippy", "check", make("check-clippy"), ("setup",), cores=0.75),
    Step("repository", "check", make("check-repo"), ("extension",), cores=0.75),
    Step("agents", "tests", AGENTS, ("extension", "agents-sdk"), cores=0.5),
    Step("haproxy-lts", "tests", HAPROXY_LTS, ("extension",), cores=0.5),
    Step("tools", "tests", TOOLS, ("extension",), cores=0.75),
    Step("types", "check", make("check-types"), ("extension",), cores=0.75),
    Step("garden", "check", make("garden"), ("setup",), cores=0.75),
    Step("format", "check", make("check-format"), ("setup",), cores=0.5),
    # Takes some seconds of a core, and an environment that is made once.
    Step("docs", "check", make("docs"), ("setup",), cores=0.5),
)  # fmt: skip
BY_NAME = {step.name: step for step in STEPS}
#: The steps of `make check`: all that need no other program running.
CHECK = ("format", "clippy", "rust", "types", "gateway", "operator", "tools", "repository")


def with_needed(names: Iterable[str]) -> list[Step]:
    """These steps and the steps that they need, in the catalogue's order. Raises KeyError for an unknown name."""
    wanted: set[str] = set()
    open_ = list(names)
    while open_:
        step = BY_NAME[open_.pop()]
        if step.name not in wanted:
            wanted.add(step.name)
            open_ += step.needs
    return [step for step in STEPS if step.name in wanted]


def narrowed(step: Step, paths: Sequence[str]) -> Step:
    """A pytest suite with these paths instead of its own."""
    assert isinstance(step.action, Pytest)
    return replace(step, action=replace(step.action, arguments=tuple(paths)))
