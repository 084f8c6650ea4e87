"""`python -m proofgate`: the same command line as the `proofgate` script."""

import sys

from proofgate.cli import main

if __name__ == "__main__":
    sys.exit(main())
