"""The gateway without Kubernetes, until Ctrl-C: what `proofgate quickstart` makes, started.

make run        one worker on loopback: in front of OpenAI with the key of OPENAI_API_KEY, and of Anthropic with that of
                ANTHROPIC_API_KEY, which takes what OpenAI turns away; else in front of a stand-in for both
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from proofgate import quickstart
from proofgate.keys import KeyFileError, one_key
from proofgate.quickstart import ANTHROPIC, CLAUDE, Second
from proofgate.quickstart_command import PROVIDER_KEY_VARIABLE

from e2e.local_gateway import READY, Program

DEFAULT = quickstart.Setup()
#: Where the key for Anthropic is found, as Anthropic's own clients find it.
SECOND_KEY_VARIABLE = "ANTHROPIC_API_KEY"
#: A model that the stand-in turns away with 503 where it is asked for it by this name.
OVERLOADED = "mock-overloaded"


def main() -> None:
    """Starts what is needed, says how to use it, and waits. The folder outlives the run: its ledger goes on."""
    folder = Path(os.environ.get("PROOFGATE_RUN", ".state/run"))
    for ends in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ends, signal.default_int_handler)
    with ExitStack() as started:
        try:
            worker, told = start(folder, os.environ, started)
            print(told, flush=True)
        except KeyboardInterrupt:
            print("stopped before the gateway was up")
            return
        except (KeyFileError, quickstart.QuickstartError) as error:
            raise SystemExit(f"make run: {error}\nPROOFGATE_RUN=DIR makes and uses another folder") from None
        except (RuntimeError, TimeoutError) as error:
            raise SystemExit(f"make run: {error}") from None
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("draining", flush=True)
            try:
                code = worker.stop(signal.SIGTERM)
            except KeyboardInterrupt:
                code = worker.stop(signal.SIGTERM)  # a second signal: it leaves within a second, sealed or not
            print("sealed" if code == 0 else f"the worker ended with {code}: see {worker.log}")


def start(
    folder: Path, environment: Mapping[str, str], started: ExitStack, setup: quickstart.Setup = DEFAULT
) -> tuple[Program, str]:
    """Starts a worker on a folder that is made the first time, and a stand-in for both providers if no key is given.

    Returns the worker and what to tell. What was started ends with the stack.
    """
    key, second_key = environment.get(PROVIDER_KEY_VARIABLE), environment.get(SECOND_KEY_VARIABLE)
    # Whoever is started has the keys from their files, or not at all.
    without_key = {
        name: value for name, value in environment.items() if name not in (PROVIDER_KEY_VARIABLE, SECOND_KEY_VARIABLE)
    }
    # A terminal sends Ctrl-C to its whole group of processes, and the worker takes two signals for haste.
    apart: dict[str, Any] = {"env": without_key, "process_group": 0}
    if key:
        setup = replace(setup, provider_key=one_key(key, f"as {PROVIDER_KEY_VARIABLE}"))
        upstream = f"{setup.base_url}, with the key of {PROVIDER_KEY_VARIABLE}"
        if second_key:
            own = one_key(second_key, f"as {SECOND_KEY_VARIABLE}")
            setup = replace(setup, second=Second(CLAUDE, provider_key=own))
            upstream += f"; then {ANTHROPIC}, with that of {SECOND_KEY_VARIABLE}"
    if not folder.exists():
        quickstart.create(folder, setup)
    if not key:
        stand_in = Program.start("mock-upstream", folder, ["mock-upstream", "--listen", "127.0.0.1:0"], **apart)
        started.callback(stand_in.stop, signal.SIGKILL)
        url = stand_in.wait_for_line(r"mock-upstream ready: (\S+)")[1]
        setup = replace(setup, base_url=url, models=(*setup.models, OVERLOADED), second=Second(CLAUDE, base_url=url))
        upstream = f"a stand-in for OpenAI and Anthropic at {url}"
    quickstart.configure(folder, setup)
    arguments = ["serve", "--config", str(folder / quickstart.CONFIGURATION)]
    worker = Program.start("worker", folder, arguments, **apart)
    started.callback(worker.stop, signal.SIGKILL)
    address, admin, *_ = worker.wait_for_line(READY).groups()
    reached = replace(setup, listen=address, admin_listen=admin)
    told = quickstart.instructions(folder, reached, str(Path(sys.executable).with_name("proofgate")))
    if not key:
        told += (
            f"\n\nsee the second provider answer for the first: ask for the model {OVERLOADED}, which the first one "
            "turns away;\nx-proofgate-attempts is 2 then, and the second attempt is a record of its own"
        )
    return worker, f"the gateway runs: http://{address}/v1 in front of {upstream}\n\n{told}\n\nCtrl-C drains and seals."


if __name__ == "__main__":
    main()
