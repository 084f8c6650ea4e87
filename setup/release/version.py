"""The version of a release: its number, the time of its commit, and its section of the changelog."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from setup.release.errors import ReleaseError

ROOT = Path(__file__).resolve().parents[2]
#: https://semver.org, without build metadata: a `+` cannot stand in an image's tag.
SEMVER = re.compile(
    r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)"
    r"(?:-(?:0|[1-9]\d*|\d*[a-zA-Z-][\w-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][\w-]*))*)?",
    re.ASCII,
)


@dataclass(frozen=True)
class Source:
    """The source of a release."""

    version: str
    #: The commit, in hexadecimal.
    commit: str
    #: The time of the commit, in seconds since 1970. All built files have this time.
    epoch: int
    #: Whether files differ from the commit.
    modified: bool


def source(version: str, root: Path = ROOT) -> Source:
    """The source of a version in a checkout. Raises ReleaseError for a version that is not the checkout's."""
    if not SEMVER.fullmatch(version):
        raise ReleaseError(
            f"VERSION={version!r} is not a semantic version such as 1.2.3 or 1.2.3-rc.1: make release VERSION=1.2.3"
        )
    found = version_of(root)
    if version != found:
        raise ReleaseError(
            f"VERSION={version} is not the version of this checkout, which is {found}: check out the tag v{version}, "
            f"or write the version into the file VERSION and run make generate"
        )
    commit = _git(root, "rev-parse", "HEAD")
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    epoch = given if given.isdecimal() else _git(root, "log", "-1", "--format=%ct")
    return Source(version, commit, int(epoch), bool(_git(root, "status", "--porcelain")))


def version_of(root: Path = ROOT) -> str:
    """The version of a checkout. Raises ReleaseError if files disagree."""
    done = subprocess.run([root / "setup" / "check-version"], capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"the checkout does not have one version:\n{done.stderr.rstrip()}")
    return done.stdout.strip()


def changes(version: str, root: Path = ROOT) -> tuple[str, bool]:
    """The section of a version in CHANGELOG.md, or else `Unreleased`, and whether the version has a section.

    Raises ReleaseError if there is neither.
    """
    text = (root / "CHANGELOG.md").read_text()
    for name, own in ((version, True), ("Unreleased", False)):
        heading = rf"^## \[?{re.escape(name)}\]?(?: [^\n]*)?\n"
        section = re.search(heading + r"(.*?)(?=^## |^\[[^\]]+\]: |\Z)", text, re.MULTILINE | re.DOTALL)
        if section and section[1].strip():
            return section[1].strip() + "\n", own
    raise ReleaseError(f"CHANGELOG.md has no section {version}: add one")


def _git(root: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"a release is made from a git checkout: git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()
