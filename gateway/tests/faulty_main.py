"""The command line with a worker that can fail; tests start it as a separate process."""

import os
import sys

import faulty_worker

from proofgate import _core, reload, serve
from proofgate.cli import main

_core.Worker = faulty_worker.Worker  # type: ignore[assignment,misc]
serve.SEAL_TIMEOUT_SECONDS = float(
    os.environ.get("PROOFGATE_TEST_SETTLE_SECONDS", serve.SEAL_TIMEOUT_SECONDS)
)
reload.POLL_SECONDS = float(os.environ.get("PROOFGATE_TEST_POLL_SECONDS", 3600))

if __name__ == "__main__":
    sys.exit(main())
