"""`python -m proofgate.local.logged_command LOG ARGUMENTS`: `proofgate ARGUMENTS`, whose output is the file LOG."""

import sys
from pathlib import Path

from proofgate.cli import main
from proofgate.local.log_file import run_rotation

if __name__ == "__main__":
    log, *arguments = sys.argv[1:]
    run_rotation(Path(log))
    sys.exit(main(arguments))
