"""The commands in the examples work on a real API server, and the gateway becomes Ready."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.controlplane.namespaces import Namespace
from tests.controlplane.server import binary

pytestmark = pytest.mark.controlplane

EXAMPLES = Path(__file__).parents[3] / "examples"
QUICKSTART = EXAMPLES / "quickstart.yaml"


def run(namespace: Namespace, command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as a user whose context has the namespace, with the tools on PATH."""
    own = namespace.plane.folder / f"{namespace.name}.kubeconfig"
    if not own.exists():
        own.write_text(namespace.plane.kubeconfig.read_text())
        kubectl = [binary("kubectl"), f"--kubeconfig={own}", "config", "set-context", "--current"]
        subprocess.run([*kubectl, f"--namespace={namespace.name}"], check=True, capture_output=True)
    tools = [str(Path(binary("kubectl")).parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    environment = {
        **os.environ,
        "KUBECONFIG": str(own),
        "PATH": os.pathsep.join(tools),
        "OPENAI_API_KEY": "sk-upstream-0123456789",
    }
    shell = ["bash", "-euo", "pipefail", "-c", command]
    return subprocess.run(shell, capture_output=True, text=True, env=environment, cwd=namespace.plane.folder)


def told_by(path: Path) -> list[str]:
    """Return the commands from the comment at the start of an example."""
    head = path.read_text().partition("\napiVersion:")[0]
    return re.findall(r"(?m)^#   (\S.*)$", head)


def test_the_quickstart_is_ready_with_the_secrets_that_its_header_tells_to_make(
    namespace: Namespace, tmp_path: Path
) -> None:
    namespace.gateway = "quickstart"
    commands = told_by(QUICKSTART)
    assert len(commands) == 2
    for command in (*commands, f"kubectl apply -f {QUICKSTART}"):
        done = run(namespace, command)
        assert done.returncode == 0, done.stderr
    namespace.start()
    namespace.settle()
    assert namespace.condition("ResolvedRefs")[0] == "True"
    assert namespace.condition("Available")[1] == "Serving"
    claim = namespace.get("pvc", "ledger-quickstart-worker-0")
    assert claim is not None
    assert "storageClassName" not in claim["spec"]
    workers = namespace.get("statefulset", "quickstart-worker")
    assert workers is not None
    assert workers["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"
    page = (EXAMPLES.parent / "docs" / "tutorial" / "on-your-cluster.md").read_text()
    [header] = re.findall(r"kubectl get secret acme-keys -o go-template='[^']*'", page)
    assert re.fullmatch("Authorization: Bearer [0-9a-f]{48}", run(namespace, header).stdout)
    told = run(namespace, f"kubectl apply --dry-run=server -f {EXAMPLES / 'ask.yaml'}")
    assert told.returncode == 0, told.stderr

    shown = run(namespace, f"{sys.executable} -m proofgate status")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert shown.stdout.startswith(f"{namespace.name}/quickstart: Ready, 1 of 1 workers ready, http://")
    assert ["acme", "0", "-", "ci", "ok"] in [line.split() for line in shown.stdout.splitlines()]


def test_the_status_is_a_plugin_of_kubectl_by_a_link(namespace: Namespace, tmp_path: Path) -> None:
    (tmp_path / "kubectl-proofgate").symlink_to(Path(sys.executable).with_name("proofgate"))
    done = run(namespace, f"PATH={tmp_path}:$PATH kubectl proofgate status --output json")
    assert done.returncode == 2
    assert "there is no GovernanceGateway in this namespace" in done.stderr
    namespace.kubectl("apply", "-f", str(QUICKSTART))
    done = run(namespace, f"PATH={tmp_path}:$PATH kubectl proofgate status --output json")
    # No operator has seen the gateway yet.
    assert done.returncode == 1, done.stderr
    assert [found["name"] for found in json.loads(done.stdout)["gateways"]] == ["quickstart"]


def test_a_context_that_is_not_there_is_told_as_kubectl_tells_it(namespace: Namespace) -> None:
    shown = run(namespace, f"{sys.executable} -m proofgate status --context nowhere")
    assert shown.returncode == 2
    assert "nowhere" in shown.stderr


def test_the_demos_question_is_let_into_a_restricted_namespace(namespace: Namespace) -> None:
    page = (EXAMPLES / "demo" / "README.md").read_text()
    found = re.search(r"(?ms)^kubectl run ask .*?hello.*?\n", page)
    assert found
    # kubectl cannot attach to the pod of a dry run.
    asked = found[0].replace("--rm -i ", "--dry-run=server ", 1)
    done = run(namespace, asked)
    assert done.returncode == 0, done.stderr
    assert "PodSecurity" not in done.stderr
    without = re.sub(r"(?s)--override-type.*?\}\}' ", "", asked)
    assert "violates PodSecurity" in run(namespace, without).stderr
