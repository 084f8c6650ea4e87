"""The load for the compiler's profile of a worker: `setup/profile` runs a worker under it.

python -m bench.training

Counts are what matters, so it may run on a busy machine. It runs what `make bench` runs, only shorter: plain requests
of three sizes, agents' requests and sessions, streams, and what is refused.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from bench import scenarios, systems
from bench.agents import scenarios as agents
from bench.load import tools, upstream
from bench.scenarios import Length, Scenario, Tools
from bench.system import Candidate

LENGTH = Length(closed_loop=3, slow_closed_loop=3, open_loop=2, attacks=1, streams=3, agents=agents.QUICK)


def main() -> int:
    """Returns the exit code."""
    built = Tools(oha=tools.oha(), stream_load=tools.stream_load())
    candidate = next(one for one in systems.CANDIDATES if one.name == systems.PRODUCT)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="proofgate-training-")))
        for paced, plan in ((False, scenarios.at_once), (True, scenarios.paced)):
            source = stack.enter_context(upstream.run(built.stream_load, folder, paced=paced))
            _train(candidate, folder, source.address, list(plan(candidate, built, LENGTH)))
    return 0


def _train(candidate: Candidate, folder: Path, upstream: str, plan: list[Scenario]) -> None:
    with (
        tempfile.TemporaryDirectory(dir=folder) as home,
        candidate.start(Path(home), upstream) as system,
    ):
        for scenario in plan:
            cell = scenario.measure(system, Path(home))
            print(f"{scenario.group}/{scenario.point}: {cell.reason or 'ran'}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
