"""The changed files decide which steps `make test-quick` runs."""

from __future__ import annotations

from suites import changed
from suites.steps import Pytest, RustTests


def test_a_changed_crate_is_linted_and_its_own_tests_run() -> None:
    steps = {step.name: step for step in changed.steps(["rust-core/crates/wire/src/lib.rs"])}
    assert steps["rust"].action == RustTests(("proofgate-wire",))
    assert "clippy" in steps
    assert not {"rust-binaries", "gateway", "operator"} & steps.keys()


def test_a_changed_layer_of_a_worker_runs_the_tests_of_the_whole_one_besides() -> None:
    steps = {step.name: step for step in changed.steps(["rust-core/crates/observe/src/recorder.rs"])}
    assert steps["rust"].action == RustTests(("proofgate-dataplane", "proofgate-observe"))


def test_changed_dependencies_run_the_tests_of_all_crates() -> None:
    steps = {step.name: step for step in changed.steps(["rust-core/Cargo.lock"])}
    assert steps["rust"].action == RustTests()


def test_a_changed_package_of_python_runs_its_unit_tests() -> None:
    names = {step.name for step in changed.steps(["operator/src/proofgate_operator/plan/decide.py"])}
    assert {"operator", "types", "format"} < names
    assert not {"gateway", "rust", "clippy"} & names


def test_one_worker_runs_end_to_end_whatever_changed() -> None:
    for paths in ([], ["docs/reference/ledger-format.md"], ["gateway/src/proofgate/cli.py"]):
        (worker,) = (step for step in changed.steps(paths) if step.name == "worker")
        assert isinstance(worker.action, Pytest)
        assert worker.action.arguments == ("e2e/worker/test_exchange.py",)


def test_a_changed_test_of_the_worker_runs_beside_it() -> None:
    (worker,) = (step for step in changed.steps(["e2e/worker/test_limits.py"]) if step.name == "worker")
    assert isinstance(worker.action, Pytest)
    assert worker.action.arguments == ("e2e/worker/test_exchange.py", "e2e/worker/test_limits.py")


def test_every_step_comes_with_what_it_needs() -> None:
    for path in ("rust-core/crates/json/src/lib.rs", "gateway/tests/test_cli.py", "setup/toolchain", "README.md"):
        names = {step.name for step in changed.steps([path])}
        for step in changed.steps([path]):
            assert set(step.needs) <= names
