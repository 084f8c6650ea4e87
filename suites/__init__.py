"""Runs the project's checks and test suites: side by side, with times, and a failed test once more at the end."""

import sys

# Checked before any module is read whose syntax an older Python does not support.
if sys.version_info < (3, 11):  # noqa: UP036
    sys.exit("missing: Python 3.11 or later; python3 is older")
