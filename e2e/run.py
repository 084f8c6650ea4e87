"""The gateway without Kubernetes: one worker and a stand-in upstream on loopback, until Ctrl-C.

make run
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from e2e.local_gateway import KEYS, MODEL, local_gateway


def main() -> None:
    """Starts both processes, says how to use them, and waits."""
    folder = Path(os.environ.get("PROOFGATE_RUN", ".state/run")).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command = Path(sys.executable).with_name("proofgate")
    options = {"listen": "127.0.0.1:8080", "admin_listen": "127.0.0.1:9090"}
    try:
        with local_gateway(folder, **options) as gateway:
            print(
                f"""the gateway runs: {gateway.base_url} in front of a stand-in upstream at {gateway.upstream_url}

  curl {gateway.base_url}/chat/completions -H 'Authorization: Bearer {KEYS["acme"]}' \\
    -H 'Content-Type: application/json' -d '{{"model":"{MODEL}","messages":[{{"role":"user","content":"hi"}}]}}'

  metrics     curl http://{gateway.admin}/metrics
  checkpoint  curl http://{gateway.admin}/checkpoint
  proof       {command} prove REQUEST_ID --admin http://{gateway.admin} \\
                --token-file {folder}/admin-token   (REQUEST_ID: x-request-id of an answer)
  ledger      {command} fsck {gateway.ledger} --key '{gateway.verifying_key}'
  files       {folder}

Ctrl-C drains the worker and seals its log.""",
                flush=True,
            )
            try:
                signal.pause()
            except KeyboardInterrupt:
                assert gateway.worker is not None
                print("draining", flush=True)
                code = gateway.worker.stop(signal.SIGTERM)
                print("sealed" if code == 0 else f"the worker ended with {code}: see {gateway.worker.log}")
    except KeyboardInterrupt:
        print("stopped before the gateway was up")


if __name__ == "__main__":
    main()
