"""The command `audit fetch`: restores logs from a mirror to a directory that `fsck --mirror` reads."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path

from proofgate.exit_codes import EXIT_FAILED, EXIT_USAGE, fail

#: Pattern of the keys of objects that are fetched. Keys are checked, because any writer of the mirror can
#: choose them.
_KEY_PATTERN = re.compile(
    r"(ledger|removed)/[0-9]{1,20}/[0-9A-HJKMNP-TV-Z]{26}/"
    r"([0-9]{20}\.(seg|next|record|tlog-proof|consistency)|([0-9A-HJKMNP-TV-Z]{26}\.)?checkpoint|tombstone)"
)
_NAME_PATTERN = re.compile(
    r"ledger/(ledger-name|key-successions/[0-9a-f]{32}\.note|configurations/[0-9a-f]{64}\.json)"
)


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Adds the command. `command` creates its parser."""
    parser = command(
        run,
        "Fetches the first version of each object. Check the result with `fsck --mirror`.",
    )
    parser.add_argument(
        "mirror",
        metavar="DIR|s3://BUCKET/PREFIX?…",
        help="the mirror, as in --mirror of `proofgate audit run`",
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="a new directory")


def run(options: argparse.Namespace) -> int:
    """Fetches the logs. If a removed log is incomplete, fetches its remaining files."""
    from proofgate.mirror.target import MirrorError, MirrorTarget
    from proofgate.mirror.target_address import TargetAddressError, parse

    def fetch(target: MirrorTarget, key: str, to: Path) -> None:
        to.parent.mkdir(parents=True, exist_ok=True)
        with to.open("xb") as file:
            target.fetch(key, file.write)

    try:
        target = parse(options.mirror)
        keys, removed = list(target.keys("ledger/")), list(target.keys("removed/"))
        whole = {key for key in keys if _KEY_PATTERN.fullmatch(key)}
        if not whole and not any(map(_KEY_PATTERN.fullmatch, removed)):
            name = options.mirror.partition("?")[0]
            return fail(f"{name} contains no mirrored log: check the location and its prefix", EXIT_FAILED)
        options.out.mkdir(parents=True)
        for key in sorted({*whole, *filter(_NAME_PATTERN.fullmatch, keys)}):
            fetch(target, key, options.out / key.removeprefix("ledger/"))
        there = {key.rsplit("/", 1)[0].removeprefix("ledger/") for key in whole}
        for key in removed:
            place = key.removeprefix("removed/")
            if _KEY_PATTERN.fullmatch(key) and place.rsplit("/", 1)[0] not in there:
                fetch(target, key, options.out / place)
    except TargetAddressError as error:
        return fail(str(error), EXIT_USAGE)
    except FileExistsError as error:
        return fail(f"{error.filename} already exists", EXIT_USAGE)
    except MirrorError as error:
        return fail(f"{options.mirror.partition('?')[0]}: {error} [{error.code}]", EXIT_FAILED)
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}", EXIT_FAILED)
    logs = len(there)
    print(
        f"{logs} logs in {options.out}; check them: proofgate ledger fsck {options.out} --mirror --key VKEY"
    )
    return 0
