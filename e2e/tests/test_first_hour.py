"""A reader of docs/tutorial/on-your-cluster.md gets an answer and its verified receipt.

The commands are exactly those of the page, except `changes`, which any reader has to make or may make: the images,
the provider's URL, and the port on this machine.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from e2e import tutorial
from e2e.kubernetes import IMAGES, PATIENCE, REPOSITORY, environment, lab, wait_until
from e2e.ports import free_port
from e2e.tests.conftest import HOUR

#: The stand-in upstream accepts any key.
PROVIDER_KEY = "sk-first-hour-not-a-secret"
CURL = "localhost/proofgate/curl:bookworm"
CURL_FOLDER = REPOSITORY / "e2e" / "tests" / "images" / "curl"
STAND_IN = REPOSITORY / "examples" / "demo" / "20-mock-upstream.yaml"


@pytest.fixture
def readers_cluster(bare_cluster: None) -> None:
    """A cluster without any trace of the product, except its images and the stand-in upstream."""
    prepare()


def prepare() -> None:
    """Creates the prerequisites of the page: a namespace, an upstream, and an image with curl."""
    HOUR.create()
    HOUR.kubectl("apply", "-f", str(STAND_IN))
    dockerfile = ("--dockerfile", str(CURL_FOLDER / "Dockerfile"), "--context", str(CURL_FOLDER))
    lab("build-image", "--name", CURL, *dockerfile)
    HOUR.wait_ready("deployment", "mock-upstream")


def changes(port: int) -> dict[str, str]:
    """Replacements in the page's commands; none adds a command."""
    haproxy = f"--set haproxyImage={IMAGES['haproxyImage']}"
    upstream = "sed s#https://api.openai.com/v1#http://mock-upstream:9000/v1#"
    return {
        "ghcr.io/you/proofgate-operator": f"{IMAGES['operator.image']} {haproxy}",
        "ghcr.io/you/proofgate-worker": IMAGES["workerImage"],
        "kubectl apply -f examples/quickstart.yaml": f"{upstream} examples/quickstart.yaml | kubectl apply -f -",
        "kubectl apply -f examples/ask.yaml": f"sed 's#docker.io/curlimages/curl:.*#{CURL}#' examples/ask.yaml"
        " | kubectl apply -f -",
        "8080:80": f"{port}:80",
        "127.0.0.1:8080": f"127.0.0.1:{port}",
    }


def verifying(port: int, folder: Path) -> dict[str, str]:
    """Replacements for verifying the answer: the environment exists, and keys stay outside the checkout."""
    command = f'proofgate() {{ {shlex.quote(sys.executable)} -m proofgate "$@"; }} && cd {shlex.quote(str(folder))}'
    return {
        'make develop && export PATH="$(./setup/environment --path dev)/bin:$PATH"': command,
        "req_01a1fda667b87102b6c38f98ba521dc6": "$(kubectl logs ask | sed -n 's/^x-request-id: *//p' | tr -d '\\r')",
        "127.0.0.1:8080": f"127.0.0.1:{port}",
    }


def exploring(port: int, folder: Path) -> dict[str, str]:
    """Replacements for viewing the exchanges: keys stay in `folder`, which is then the script's working folder."""
    file = REPOSITORY / "examples" / "quickstart-explorer.json"
    return {
        "examples/quickstart-explorer.json": shlex.quote(str(file)),
        "service/quickstart-auditor 9091": f"service/quickstart-auditor {port}:9091",
        "proofgate keys generate": f"cd {shlex.quote(str(folder))} && proofgate keys generate",
    }


def follow(script: str, folder: Path, port: int | None = None) -> str:
    """Runs a script in one shell, as a reader does, and returns its output; ends its remaining processes.

    With an explorer's port, it first waits until an officer sees the two exchanges.
    """
    # The script sets the context's namespace. It uses a copy, so that no other command uses this namespace.
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(Path(environment()["KUBECONFIG"]).read_text())
    told = folder / "told"
    with told.open("wb") as output:
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=REPOSITORY, start_new_session=True,
            env={**environment(), "KUBECONFIG": str(kubeconfig), "OPENAI_API_KEY": PROVIDER_KEY},
        )  # fmt: skip
        try:
            code = shell.wait(3 * PATIENCE)
            if code == 0 and port is not None:
                wait_until(lambda: _seen(port, folder) == 2, PATIENCE, "the officer sees both exchanges")
        finally:
            # The background port forward belongs to the shell's process group.
            os.killpg(shell.pid, signal.SIGTERM)
            shell.wait(PATIENCE)
    assert code == 0, told.read_text()
    return told.read_text()


def _seen(port: int, folder: Path) -> int:
    """The number of exchanges that an officer sees; -1 if there is no answer yet."""
    key = (folder / "officer-key").read_text()
    try:
        answer = httpx.get(
            f"http://127.0.0.1:{port}/v1/exchanges", headers={"Authorization": f"Bearer {key}"}, timeout=PATIENCE
        )
    except httpx.HTTPError:
        return -1
    return len(answer.json()["exchanges"]) if answer.status_code == 200 else -1


def test_the_tutorials_commands_lead_from_a_bare_cluster_to_a_verified_answer(
    readers_cluster: None, tmp_path: Path
) -> None:
    port, explorer = free_port(), free_port()
    script = tutorial.replaced(tutorial.script("Install and ask"), changes(port))
    script += tutorial.replaced(tutorial.script("Verify the answer"), verifying(port, tmp_path))
    script += tutorial.replaced(tutorial.script("See the exchanges"), exploring(explorer, tmp_path))
    told = follow(script, tmp_path, explorer)
    assert told.count("governancegateway.proofgate.dev/quickstart condition met") == 2
    # One exchange is from inside the cluster, one through the forwarded port.
    assert told.count("HTTP/1.1 200 OK") == 2, told
    assert told.count("gpt-4o-mini: token1") == 2, told
    assert "\nverified\n" in told
    assert PROVIDER_KEY not in told
    assert HOUR.is_ready("quickstart", 1)
    claim = HOUR.get("persistentvolumeclaim", "ledger-quickstart-worker-0")
    assert claim is not None and claim["status"]["phase"] == "Bound"

    status = [sys.executable, "-m", "proofgate", "status", "--namespace", HOUR.name]
    shown = subprocess.run(status, capture_output=True, text=True, env=environment(), timeout=PATIENCE)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert shown.stdout.startswith("llm/quickstart: Ready, 1 of 1 workers ready, http://quickstart.llm.svc")
    [row] = [line.split() for line in shown.stdout.splitlines() if line.startswith("acme")]
    assert row == ["acme", "0", "-", "ci", "ok"]
