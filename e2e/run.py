"""The gateway without Kubernetes, until Ctrl-C: what `proofgate quickstart` makes, started.

make run        one worker on loopback: in front of OpenAI with the key of OPENAI_API_KEY, else of a stand-in upstream
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from proofgate import quickstart
from proofgate.keys import KeyFileError, one_key
from proofgate.quickstart_command import PROVIDER_KEY_VARIABLE

from e2e.local_gateway import READY, Program

DEFAULT = quickstart.Setup()


def main() -> None:
    """Starts what is needed, says how to use it, and waits. The folder outlives the run: its ledger goes on."""
    folder = Path(os.environ.get("PROOFGATE_RUN", ".state/run"))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with ExitStack() as started:
        try:
            worker, told = start(folder, os.environ, started)
            print(told, flush=True)
        except KeyboardInterrupt:
            print("stopped before the gateway was up")
            return
        except (KeyFileError, quickstart.QuickstartError) as error:
            raise SystemExit(f"make run: {error}\nPROOFGATE_RUN=DIR makes and uses another folder") from None
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("draining", flush=True)
            code = worker.stop(signal.SIGTERM)
            print("sealed" if code == 0 else f"the worker ended with {code}: see {worker.log}")


def start(
    folder: Path, environment: Mapping[str, str], started: ExitStack, setup: quickstart.Setup = DEFAULT
) -> tuple[Program, str]:
    """Starts a worker on a folder that is made the first time, and a stand-in upstream if no key is given.

    Returns the worker and what to tell. What was started ends with the stack.
    """
    key = environment.get(PROVIDER_KEY_VARIABLE)
    # Whoever is started has the key from its file, or not at all.
    without_key = {name: value for name, value in environment.items() if name != PROVIDER_KEY_VARIABLE}
    if key:
        setup = replace(setup, provider_key=one_key(key, f"as {PROVIDER_KEY_VARIABLE}"))
        upstream = f"{setup.base_url}, with the key of {PROVIDER_KEY_VARIABLE}"
    if not folder.exists():
        quickstart.create(folder, setup)
    if not key:
        stand_in = Program.start("mock-upstream", folder, ["mock-upstream", "--listen", "127.0.0.1:0"], env=without_key)
        started.callback(stand_in.stop, signal.SIGKILL)
        setup = replace(setup, base_url=stand_in.wait_for_line(r"mock-upstream ready: (\S+)")[1])
        upstream = f"a stand-in upstream at {setup.base_url}"
    quickstart.configure(folder, setup)
    arguments = ["serve", "--config", str(folder / quickstart.CONFIGURATION)]
    worker = Program.start("worker", folder, arguments, env=without_key)
    started.callback(worker.stop, signal.SIGKILL)
    address, admin, *_ = worker.wait_for_line(READY).groups()
    reached = replace(setup, listen=address, admin_listen=admin)
    told = quickstart.instructions(folder, reached, str(Path(sys.executable).with_name("proofgate")))
    return worker, f"the gateway runs: http://{address}/v1 in front of {upstream}\n\n{told}\n\nCtrl-C drains and seals."


if __name__ == "__main__":
    main()
