"""Rotates a key: creates a new key, and a statement of succession that both keys sign."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from proofgate import _core, output
from proofgate.exit_codes import EXIT_OK, EXIT_USAGE, fail
from proofgate.keys import SIGNING_KEY_FILE, VERIFYING_KEY_FILE, KeyFileError, warn_if_exposed, write_new_file

SUCCESSIONS_FILE = "key-successions"
ROLLING_KEY_FILE = "signing-key-with-former"
_DAY_US = 86_400_000_000


def add_rotate(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command `rotate`. `command` creates its parser."""
    rotate = command(
        _rotate,
        "Creates the new key, and a statement of succession that both keys sign. Writes "
        "signing-key-with-former and signing-key (mode 0600), verifying-key and key-successions. "
        "Never overwrites a file. Key files also contain the statements. No secret is printed.",
    )
    rotate.add_argument("old", type=Path, metavar="SIGNING_KEY", help="the old key")
    rotate.add_argument("--to", type=Path, metavar="SIGNING_KEY", help="the new key (default: create one)")
    rotate.add_argument(
        "--grace",
        type=_days,
        default=7,
        metavar="DAYS",
        help="for how many days the old key may still start logs, remove logs and erase salts "
        "(default: 7; 0: not at all)",
    )
    rotate.add_argument("--out", type=Path, required=True, metavar="DIR", help="the output directory")


def add_show(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command `show`. `command` creates its parser."""
    show = command(_show)
    show.add_argument(
        "file", type=Path, metavar="FILE", help="the file with a signing key or a verifying key"
    )
    output.add_argument(show)


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 36_500:
        raise argparse.ArgumentTypeError("expected a whole number of days, at most 36500")
    return int(text)


def rotate(
    old: Path, new: Path | None, grace_days: int, out: Path, now_us: int
) -> list[tuple[str, int | None]]:
    """Creates the statement, and a new key unless one is given, and writes all four files.

    Returns the keys of the chain, oldest first, each with the time in Unix microseconds until which it may
    start something new, such as a log (None: no limit). Raises KeyFileError; no message contains a part of a
    key.
    """
    ending = _read(old)
    following = _read(new) if new is not None else _core.generate_key(_name(old, ending))[0]
    try:
        note = _core.sign_key_succession(ending, following, now_us, now_us + grace_days * _DAY_US)
    except ValueError as error:
        raise KeyFileError(f"{new or 'the new key'} cannot follow {old}: {error}") from None
    notes = "\n".join(dict.fromkeys([*_notes(ending), *_notes(following), note]))
    signing = f"{_first_line(following)}\n\n{notes}"
    rolling = f"{_first_line(following)}\n{_first_line(ending)}\n\n{notes}"
    try:
        line = _core.key_line(rolling)
    except ValueError as error:
        raise KeyFileError(f"the statements contradict each other: {error}") from None
    verifying = f"{_core.verifying_key(signing)}\n\n{notes}"
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_new_file(out / ROLLING_KEY_FILE, rolling, 0o600)
        write_new_file(out / SIGNING_KEY_FILE, signing, 0o600)
        write_new_file(out / VERIFYING_KEY_FILE, verifying, 0o644)
        write_new_file(out / SUCCESSIONS_FILE, notes, 0o644)
    except FileExistsError as error:
        raise KeyFileError(f"{error.filename} exists: nothing is overwritten, choose another --out") from None
    except OSError as error:
        raise KeyFileError(f"{error.filename} cannot be written: {error.strerror}") from None
    return line


def _rotate(options: argparse.Namespace) -> int:
    warn_if_exposed(options.old)
    if options.to is not None:
        warn_if_exposed(options.to)
    try:
        line = rotate(options.old, options.to, options.grace, options.out, time.time_ns() // 1000)
    except KeyFileError as error:
        return fail(str(error), EXIT_USAGE)
    print(
        f"wrote {options.out / ROLLING_KEY_FILE} (secret: both keys; for workers until each has "
        "started a log)"
    )
    print(f"wrote {options.out / SIGNING_KEY_FILE} (secret: the new key only)")
    print(f"wrote {options.out / VERIFYING_KEY_FILE} (public: give it to those who verify)")
    print(
        f"wrote {options.out / SUCCESSIONS_FILE} (public: verifiers append it to the verifying "
        "key that they have)"
    )
    _print_chain(line)
    return EXIT_OK


def _show(options: argparse.Namespace) -> int:
    try:
        text = _read(options.file)
        if text.startswith("PRIVATE+KEY+"):
            warn_if_exposed(options.file)
        line = _core.key_line(text)
        if output.is_data(options):
            keys = [{"key": vkey, "until": None if until is None else _time(until)} for vkey, until in line]
            output.show(options, {"keys": keys})
        else:
            _print_chain(line)
    except KeyFileError as error:
        return fail(str(error), EXIT_USAGE)
    except ValueError as error:
        return fail(f"{options.file} contains no key: {error}", EXIT_USAGE)
    return EXIT_OK


def _print_chain(line: list[tuple[str, int | None]]) -> None:
    for vkey, until in line:
        ends = "" if until is None else f"  until {_time(until)}"
        print(f"{vkey}{ends}")


def _time(microseconds: int) -> str:
    try:
        return datetime.fromtimestamp(microseconds // 1_000_000, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return f"{microseconds} (unix microseconds)"


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise KeyFileError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KeyFileError(f"{path} contains no key: it is not text") from None


def _name(path: Path, text: str) -> str:
    try:
        return _core.verifying_key(text).split("+")[0]
    except ValueError:
        # The core's message is not used, because it may describe the key.
        raise KeyFileError(
            f"{path} contains no signing key: create one with `proofgate keys generate`"
        ) from None


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0].strip()


def _notes(text: str) -> list[str]:
    return [note for note in _core.split_key_successions(text) if not note.startswith("PRIVATE+KEY+")]
