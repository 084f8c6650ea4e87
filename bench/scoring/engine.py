"""The Rust engine through its examples, which are built with cargo and use JSON lines."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.scoring.reference import Match, Scanned
from bench.scoring.rules import CRATE, PACKS, REPOSITORY, Direction, pack_names
from bench.scoring.spared import Allow

MANIFEST = REPOSITORY / "rust-core" / "Cargo.toml"


class EngineError(RuntimeError):
    """The engine could not be built, or ended with an error; the message holds what it printed."""


@dataclass(frozen=True)
class Event:
    """One text to scan."""

    text: str
    direction: Direction = "request"


def cache() -> Path:
    """The folder for everything that is built or fetched: `PROOFGATE_CACHE`, or the user's cache."""
    configured = os.environ.get("PROOFGATE_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "proofgate"


def example(name: str) -> Path:
    """The path of the release build of an example of the policy crate."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or cache() / "target")
    return target / "release" / "examples" / name


def build(name: str) -> Path:
    """Builds an example and returns its path. Raises EngineError."""
    environment = os.environ | {"CARGO_TARGET_DIR": str(example(name).parents[2])}
    command = ["cargo", "build", "--locked", "--quiet", "--release", "--manifest-path", str(MANIFEST)]
    built = subprocess.run([*command, "-p", "proofgate-policy", "--example", name], env=environment, check=False)
    if built.returncode:
        raise EngineError(f"cargo could not build the example {name}")
    return example(name)


def is_current(name: str) -> bool:
    """Whether an example is built and at least as new as the engine's sources."""
    built = example(name)
    if not built.exists():
        return False
    sources = [*CRATE.glob("src/**/*"), *CRATE.glob(f"examples/{name}*")]
    return built.stat().st_mtime >= max(source.stat().st_mtime for source in sources)


def verdicts(binary: Path, events: Iterable[Event], allow: Allow | None = None) -> list[set[Match]]:
    """The matches of every event, by the rules in the packs' folder. Raises EngineError."""
    return [scanned.matches for scanned in scans(binary, events, allow)]


def scans(binary: Path, events: Iterable[Event], allow: Allow | None = None) -> list[Scanned]:
    """The same, with what is replaced. Raises EngineError."""
    allowed = ["--allow", json.dumps(asdict(allow))] if allow else []
    lines = "".join(json.dumps({"text": event.text, "direction": event.direction}) + "\n" for event in events)
    files = [str(PACKS / f"{name}.toml") for name in pack_names()]
    run = subprocess.run(
        [binary, *allowed, "--rules", *files], input=lines, capture_output=True, encoding="utf-8", check=False
    )
    if run.returncode:
        raise EngineError(f"{binary.name} ended with {run.returncode}: {run.stderr.strip()}")
    answers = [json.loads(line) for line in run.stdout.splitlines()]
    kinds = ("matches", "replaced")
    return [Scanned(*({Match(*match) for match in answer[kind]} for kind in kinds)) for answer in answers]
