"""The main job on a real cluster: install, apply, chat, scale, prove, catch a changed byte, and see it all audited.

make demo
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from openai import OpenAI

from e2e import demo_receipt
from e2e.cluster.layout import cache_folder
from e2e.demo_page import ExchangePage
from e2e.kubernetes import OPERATOR, REPOSITORY, Namespace, clear, install_operator, run, wait_until

DEMO = Namespace("proofgate-demo")
KEYS = {"acme": "sk-demo-acme-0123456789abcdef", "globex": "sk-demo-globex-0123456789abcdef"}
MODEL = "gpt-4o-mini"
#: A model of two providers, the first of which always answers 503.
RESILIENT = "always-there"
#: The key of a reader of all tenants, from examples/demo/12-auditor.yaml.
READER = "reader-demo-officer-0123456789abcdef"
_STARTED = time.monotonic()


def say(text: str) -> None:
    """Prints a line with the seconds since the start."""
    print(f"[{time.monotonic() - _STARTED:6.1f}s] {text}", flush=True)


def main() -> None:
    """Runs the demonstration; the last line is `demo: ok`."""
    if OPERATOR.exists():
        say("removing what an earlier run left")
        clear(DEMO, Namespace("proofgate-e2e"))
    for namespace in (OPERATOR, DEMO):
        namespace.create()
    say("helm install: the operator and the GovernanceGateway CRD")
    install_operator([DEMO.name])
    say("kubectl apply -f examples/demo")
    print(DEMO.kubectl("apply", "-f", str(REPOSITORY / "examples" / "demo")), end="")
    wait_for_workers(2)
    print(DEMO.kubectl("get", "ggw,pods", "--output", "wide"), end="")
    with DEMO.forwarded("service/demo", 80) as address:
        for tenant in KEYS:
            chat(address, tenant)
    say("kubectl scale ggw/demo --replicas=3")
    DEMO.kubectl("scale", "ggw/demo", "--replicas=3")
    wait_for_workers(3)
    with DEMO.forwarded("service/demo", 80) as address:
        request_id = fall_back(address)
    prove(request_id)
    explore(receipt())
    finish()


def wait_for_workers(replicas: int) -> None:
    """Waits until the gateway is Ready with `replicas` workers, and prints what it waits for."""
    told = ""

    def ready() -> bool:
        nonlocal told
        condition = DEMO.condition("demo", "Ready")
        text = f"waiting: {condition.get('reason', 'not seen yet')}: {condition.get('message', '')}".rstrip(": ")
        if text != told and condition.get("status") != "True":
            say(text)
            told = text
        return DEMO.is_ready("demo", replicas)

    wait_until(ready, 180, f"gateway demo is Ready with {replicas} workers")
    say(f"gateway demo is Ready with {replicas} workers")


def chat(address: str, tenant: str) -> str:
    """One plain and one streamed completion through HAProxy; returns the request id of the plain one."""
    with OpenAI(base_url=f"http://{address}/v1", api_key=KEYS[tenant]) as client:
        question = f"Hello from {tenant}"
        raw = client.chat.completions.with_raw_response.create(
            model=MODEL, messages=[{"role": "user", "content": question}]
        )
        answer = raw.parse().choices[0].message.content
        request_id: str = raw.headers["x-request-id"]
        say(f"{tenant}: {answer!r} ({request_id})")
        stream = client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": question}], stream=True
        )
        pieces = [chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices]
        say(f"{tenant}, streamed in {len(pieces)} pieces: {''.join(pieces)!r}")
    return request_id


def fall_back(address: str) -> str:
    """Sends a completion that falls back to a second provider with Anthropic's API; returns the request id."""
    with OpenAI(base_url=f"http://{address}/v1", api_key=KEYS["acme"], max_retries=0) as client:
        raw = client.chat.completions.with_raw_response.create(
            model=RESILIENT, messages=[{"role": "user", "content": "Hello, is anybody there?"}]
        )
    answer = raw.parse().choices[0].message.content
    request_id: str = raw.headers["x-request-id"]
    attempts = raw.headers["x-proofgate-attempts"]
    say(f"acme, from the second provider after {attempts} attempts: {answer!r} ({request_id})")
    return request_id


def proofgate(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command line of the product on this machine."""
    command = [sys.executable, "-m", "proofgate", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def prove(request_id: str) -> None:
    """Exports the proof of one exchange from its worker, verifies it, and shows that one changed byte is caught."""
    key = verifying_key()
    with tempfile.TemporaryDirectory(prefix="proofgate-demo-") as scratch:
        folder = Path(scratch)
        pod = export(request_id, folder)
        say(f"{pod} proved the exchange; verifying it here, offline, with {key}")
        for kind in ("admission", "attempt", "completion"):
            record, proof = folder / f"{request_id}.{kind}.json", folder / f"{request_id}.{kind}.tlog-proof"
            arguments = ["verify", str(proof), "--record", str(record), "--key", key]
            verified = proofgate(*arguments)
            if verified.returncode:
                raise SystemExit(f"the {kind} does not verify: {verified.stderr}")
            print(f"  {kind}: " + verified.stdout.strip().replace("\n", ", "))
        say("changing one byte of the evidence")
        data = bytearray(record.read_bytes())
        data[len(data) // 2] ^= 1
        record.write_bytes(data)
        caught = proofgate(*arguments)
        if caught.returncode != 40:
            raise SystemExit("the changed byte was not caught")
        print(f"  caught: {caught.stderr.strip()}")


def verifying_key() -> str:
    """The ledger's verifying key, as the operator made it."""
    secret = DEMO.get("secret", "demo-ledger")
    assert secret is not None
    return base64.b64decode(secret["data"]["verifying-key"]).decode().strip()


def receipt() -> str:
    """A tenant gets the receipt of an exchange, and verifies it with both bodies. Returns the request id."""
    scratch = tempfile.TemporaryDirectory(prefix="proofgate-demo-")
    with scratch as folder, DEMO.forwarded("service/demo", 80) as address:
        say("acme fetches a receipt with its own key, and verifies it offline with the bytes that it sent and got")
        url, key = f"http://{address}", verifying_key()
        shown = demo_receipt.fetch_and_verify(url, KEYS["acme"], RESILIENT, key, Path(folder))
    print("\n".join(f"  {line}" for line in shown.lines))
    return shown.request_id


def explore(request_id: str) -> None:
    """Shows the same exchange on the auditor's page to a reader, and writes a picture of it."""
    wait_until(
        lambda: DEMO.condition("demo", "Audited").get("reason") == "NothingFound", 180, "the auditor has found nothing"
    )
    say("the auditor follows the ledger and has found nothing")
    with DEMO.forwarded("pod/demo-auditor-0", 9091) as address:
        page = ExchangePage(f"http://{address}", request_id, READER)
        wait_until(page.is_indexed, 60, "the exchange is in the auditor's index")
        say(page.leave_picture(cache_folder() / "demo"))


def export(request_id: str, folder: Path) -> str:
    """Asks each worker for the proof, and returns the name of the worker that has it."""
    told = []
    secret = DEMO.get("secret", "demo-admin")
    if secret is None:
        raise SystemExit("there is no Secret demo-admin with the admin token")
    token_file = folder / "admin-token"
    token_file.write_bytes(base64.b64decode(secret["data"]["token"]))
    token_file.chmod(0o600)
    for pod in DEMO.list("pods", "app.kubernetes.io/component=worker"):
        name: str = pod["metadata"]["name"]
        with DEMO.forwarded(f"pod/{name}", 9090) as admin:
            source = ("--admin", f"http://{admin}", "--token-file", str(token_file))
            asked = proofgate("ledger", "prove", request_id, *source, "--out", str(folder))
        if asked.returncode == 0:
            return name
        told.append(f"{name}: {asked.stderr.strip()}")
    raise SystemExit("\n".join([f"no worker proves {request_id}", *told]))


def finish() -> None:
    """Prints the running parts, how to reach them and how to remove them."""
    print()
    print(run(["kubectl", "get", "nodes", "--output", "wide"]), end="")
    print(DEMO.kubectl("get", "ggw,statefulsets,deployments,pods,services,pvc"), end="")
    print(
        f"""
to reach it:
  eval "$(python3 -m e2e.cluster env)"
  kubectl --namespace {DEMO.name} port-forward service/demo 8080:80
  curl http://127.0.0.1:8080/v1/chat/completions -H 'Authorization: Bearer {KEYS["acme"]}' \\
    -H 'Content-Type: application/json' -d '{{"model":"{MODEL}","messages":[{{"role":"user","content":"hi"}}]}}'
to see it, as a reader of all tenants with the key {READER}:
  kubectl --namespace {DEMO.name} port-forward pod/demo-auditor-0 9091
  open http://127.0.0.1:9091/#/exchanges
to tear it down:
  make lab-down
"""
    )
    say("done")
    print("demo: ok")


if __name__ == "__main__":
    main()
