"""Faults of a ledger's files, which every tool must report and survive.

Faults that a file system can hold are put into the folder. For a bad sector, an unreadable file (tests may run as root)
and a full volume, `shim.py` makes system calls fail.
"""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.shim import Calls, Shim

#: Runs commands within one process, whose calls may fail. Each input line is a command, each output line its outcome.
_RUN = """
import json, sys
from e2e.commands import proofgate
from e2e.faults import mirrored
out = sys.stdout
for line in sys.stdin:
    try:
        command, *arguments = json.loads(line)
        done = mirrored(*arguments) if command == "mirror" else proofgate(command, *arguments)
        told = [done.returncode, done.stdout, done.stderr]
    except BaseException as error:
        told = [-1, "", f"Traceback: {error!r}"]
    print(json.dumps(told), file=out, flush=True)
"""


def _gone(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _pipe(path: Path, _: Shim) -> None:
    _gone(path)
    os.mkfifo(path)


def _folder(path: Path, _: Shim) -> None:
    _gone(path)
    path.mkdir()


def _dangling_link(path: Path, _: Shim) -> None:
    _gone(path)
    path.symlink_to(path.name + ".is-not-there")


def _link_to_itself(path: Path, _: Shim) -> None:
    _gone(path)
    path.symlink_to(path.name)


def _endless_device(path: Path, _: Shim) -> None:
    _gone(path)
    path.symlink_to("/dev/zero")


def _bad_sector(path: Path, calls: Shim) -> None:
    calls.fail(Calls.READING, errno.EIO, str(path))


def _forbidden(path: Path, calls: Shim) -> None:
    calls.fail(Calls.OPENING, errno.EACCES, str(path))


#: The faults by name, each with the function that replaces a file by it.
FAULTS: dict[str, Callable[[Path, Shim], None]] = {
    "bad sector": _bad_sector,
    "forbidden": _forbidden,
    "pipe": _pipe,
    "folder": _folder,
    "dangling link": _dangling_link,
    "link to itself": _link_to_itself,
    "endless device": _endless_device,
}


def mirrored(ledger: str, state: str, signing_key: str, ledger_key: str, to: str) -> subprocess.CompletedProcess[str]:
    """One round of an auditor's mirror of an accepted ledger: its findings, and the reasons for a retry."""
    from proofgate import _core
    from proofgate.mirror.directory import DirectoryTarget
    from proofgate.mirror.mirror import Mirror
    from proofgate.mirror.target import MirrorError

    hour = 3_600_000_000
    key = Path(signing_key).read_text(encoding="utf-8").strip()
    auditor = _core.Auditor(ledger, state, key, ledger_key, hour, hour, hour)
    mirror = Mirror(DirectoryTarget(Path(to)), auditor, Path(ledger), Path(state), recheck_seconds=0.0)
    told = ""
    try:
        mirror.run_once()
    except MirrorError as error:
        told = f"{error} [{error.code}]"
    found = [finding["message"] for finding in mirror.findings()]
    return subprocess.CompletedProcess(["mirror"], 10 if told or found else 0, json.dumps(found), told)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a command: its exit code, its standard output, and all of its output."""

    code: int
    out: str
    text: str


class Commands:
    """Runs `proofgate` with failing calls. A command that hangs or ends its process does not affect the others."""

    def __init__(self, calls: Shim) -> None:
        self._calls = calls
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", _RUN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, **self._calls.environment, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def run(self, *arguments: object, seconds: float) -> Outcome:
        """Runs a command. Raises TimeoutError if it takes longer than `seconds`."""
        line = json.dumps([str(argument) for argument in arguments]) + "\n"
        if self._process.poll() is not None:
            self._process = self._start()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], seconds)[0]:
            self.end()
            raise TimeoutError(f"proofgate {arguments[0]} does not end within {seconds} s")
        answer = self._process.stdout.readline()
        assert answer, f"proofgate {arguments[0]} ended the process: {self._process.wait()}"
        code, out, err = json.loads(answer)
        return Outcome(code, out, out + err)

    def end(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def commands(calls: Shim) -> Iterator[Commands]:
    """A separate process for commands, so that preloaded libraries are loaded from its start."""
    process = Commands(calls)
    try:
        yield process
    finally:
        process.end()
