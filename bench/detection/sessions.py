"""Honest files of ordinary repositories, and sessions of agents that read them.

A session is a chat request whose tools' results are the files of one repository, in a random but repeatable order. It
is judged in two ways: message by message, and as if the scores of all its messages were one.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.detection.judge import Found

SIZES = (10, 25, 50, 100)
LARGEST = 200_000
"""Maximum bytes of a file that an agent would read whole."""

_KINDS = frozenset(
    f".{kind}"
    for kind in re.findall(
        r"[a-z]+",
        "c cc cfg conf cpp cs css env erb ex exs go gradle h hpp html ini java js json jsx kt kts lock lua md "
        "mjs php properties proto py rb rs rst scala sh sql svg swift tf toml ts tsx txt vue xml yaml yml ",
    )
)
_NAMES = frozenset({"Dockerfile", "Makefile", "Rakefile", "Gemfile", "Procfile"})


@dataclass(frozen=True)
class File:
    """A text file of a repository."""

    repository: str
    path: str
    text: str


def files(folder: Path, most: int, seed: int = 1) -> list[File]:
    """At most `most` files of each repository below `folder`, vendored code left out."""
    repositories = sorted(path for path in folder.iterdir() if path.is_dir())
    return [file for repository in repositories for file in files_of(repository, most, seed)]


def files_of(repository: Path, most: int, seed: int = 1) -> list[File]:
    """At most `most` files of one repository, vendored code left out."""
    chosen = []
    paths = sorted(path for path in repository.rglob("*") if _is_text(path, repository))
    random.Random(f"{seed}-{repository.name}").shuffle(paths)
    for path in paths[:most]:
        text = path.read_bytes().decode(errors="ignore")
        if text.strip():
            chosen.append(File(repository.name, path.relative_to(repository).as_posix(), text))
    return chosen


def _is_text(path: Path, repository: Path) -> bool:
    parts = path.relative_to(repository).parts
    vendored = {"vendor", "node_modules", "third_party"} & set(parts)
    known = path.suffix in _KINDS or path.name in _NAMES
    return known and not vendored and path.is_file() and not path.is_symlink() and path.stat().st_size <= LARGEST


@dataclass(frozen=True)
class Refused:
    """The refusals among `sessions` of a size: those with a file that is refused alone, and those by the sum only."""

    size: int
    sessions: int
    by_a_file: int
    by_the_sum: int


def refused(judged: Mapping[File, Found], threshold: int, each: int = 10, seed: int = 1) -> Iterator[Refused]:
    """The refusals for each size, with `each` sessions of every repository that has enough files."""
    by_repository: dict[str, list[Found]] = {}
    for file, found in judged.items():
        by_repository.setdefault(file.repository, []).append(found)
    for size in SIZES:
        sessions = [
            random.Random(f"{seed}-{name}-{size}-{number}").sample(found, size)
            for name, found in sorted(by_repository.items())
            if len(found) >= size
            for number in range(each)
        ]
        alone = [any(found.denied(threshold) for found in session) for session in sessions]
        together = [together_denied(session, threshold) for session in sessions]
        only_together = sum(whole and not part for whole, part in zip(together, alone, strict=True))
        yield Refused(size, len(sessions), sum(alone), only_together)


def together_denied(session: Sequence[Found], threshold: int) -> bool:
    """Whether the rules of all messages deny when each rule counts once for the request."""
    scores: dict[str, int] = {}
    for found in session:
        scores |= found.scores
    return sum(scores.values()) >= threshold or any(found.blocked for found in session)
