"""The command line within the test process, because starting a separate process takes half a second."""

from __future__ import annotations

import io
import logging
import subprocess
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from proofgate.cli import main


def proofgate(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Runs `proofgate ARGUMENTS`; returns its exit code and output."""
    command = [str(argument) for argument in arguments]
    # The streams have a byte buffer, because some commands write bytes.
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err), _logging_as_in_a_new_process(), warnings.catch_warnings():
        # Resources that it leaves open would be closed at the end of its process.
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            code = main(command)
        except SystemExit as ended:
            # argparse ends a wrongly called command this way.
            code = int(ended.code or 0)
    return subprocess.CompletedProcess(["proofgate", *command], code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


@contextmanager
def _logging_as_in_a_new_process() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    root.handlers = []
    root.setLevel(logging.WARNING)
    try:
        yield
    finally:
        root.handlers = handlers
        root.setLevel(level)
