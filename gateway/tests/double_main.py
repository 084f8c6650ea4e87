"""The command line on top of the core double: what the tests start as a process of its own."""

import os
import sys

import core_double

sys.modules["proofgate._core"] = core_double

from proofgate import reload, serve  # noqa: E402 - the double must be in place first
from proofgate.cli import main  # noqa: E402 - as above

serve.SETTLE_SECONDS = float(os.environ.get("PROOFGATE_TEST_SETTLE_SECONDS", serve.SETTLE_SECONDS))
reload.POLL_SECONDS = float(os.environ.get("PROOFGATE_TEST_POLL_SECONDS", 3600))

if __name__ == "__main__":
    sys.exit(main())
