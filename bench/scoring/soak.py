"""Runs the engine under load for a long time, with a panic every thousandth event. Memory must stay flat.

The example `scoring` ends with an error as soon as an event without a panic has another outcome than before.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

from bench.scoring.engine import EngineError
from bench.scoring.rules import pack_names

PANIC_EVERY = 1000
_SUMMARY = re.compile(
    r"soak: (?P<events>\d+) events in (?P<seconds>[0-9.]+) s .*?, (?P<panics>\d+) panics,.*?"
    r"resident: (?P<first_kib>\d+) KiB first, (?P<last_kib>\d+) KiB last, slope (?P<slope>[-+0-9.]+) KiB/s",
    re.DOTALL,
)


def seconds(duration: str) -> int:
    """The seconds of a duration such as `90s`, `30m` or `1h`. Raises ValueError."""
    written = re.fullmatch(r"([1-9][0-9]*)([smh])", duration)
    if written is None:
        raise ValueError(f"{duration!r} is no duration: write 90s, 30m or 1h")
    return int(written[1]) * {"s": 1, "m": 60, "h": 3600}[written[2]]


def soak(binary: Path, duration: int) -> dict[str, Any]:
    """Runs for `duration` seconds. Raises EngineError."""
    options = ["--packs", ",".join(pack_names()), "--soak", str(duration), "--panic-every", str(PANIC_EVERY)]
    run = subprocess.run([binary, *options], capture_output=True, text=True, check=False)
    if run.returncode:
        raise EngineError(f"{binary.name} ended with {run.returncode}: {run.stderr.strip()}")
    return read_summary(run.stdout)


def read_summary(output: str) -> dict[str, Any]:
    """The summary that the example prints at the end. Raises EngineError."""
    found = _SUMMARY.search(output)
    if found is None:
        raise EngineError(f"no summary of the soak in {output!r}")
    return {
        "seconds": round(float(found["seconds"])),
        "events": int(found["events"]),
        "panics": int(found["panics"]),
        "panic_every": PANIC_EVERY,
        "resident_kib": {"first": int(found["first_kib"]), "last": int(found["last_kib"])},
        "slope_kib_per_second": float(found["slope"]),
    }


def show(result: dict[str, Any]) -> None:
    """Prints what `soak` found."""
    resident = result["resident_kib"]
    print(
        f"{result['events']:,} events in {result['seconds']} s, {result['panics']:,} of them panicked, no other changed"
    )
    print(
        f"resident memory {resident['first']:,} to {resident['last']:,} KiB,"
        f" slope {result['slope_kib_per_second']:+.2f} KiB/s"
    )
