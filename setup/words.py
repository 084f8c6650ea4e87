"""Finds words that have a plain standard term, in the checked lines of a change.

Text is what people read: Markdown outside of code, comments, docstrings, and strings with a space in them, which are
messages. The list is setup/words.toml, the exceptions are in setup/words-allowed.txt.
"""

from __future__ import annotations

import fnmatch
import io
import re
import subprocess
import tokenize
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SETUP = Path(__file__).resolve().parent
#: Code and addresses.
_SPAN = re.compile(r"`[^`]*`|https?://\S+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
#: The pattern of a comment's start, by the suffix of a file's name.
_COMMENT = {
    **dict.fromkeys((".rs", ".go", ".js", ".ts"), re.compile(r"//[/!]?(.*)$")),
    **dict.fromkeys((".toml", ".yaml", ".yml", ".sh", ".cfg", ".txt"), re.compile(r"(?:^|\s)#(.*)$")),
}
_HUNK = re.compile(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Finding:
    """A word that has a plain term: the path from the root, the line number from 1, the word, and the plain term."""

    path: str
    line: int
    word: str
    better: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: “{self.word}”: {self.better}"


class Words:
    """The list of words and its exceptions."""

    def __init__(self, words: str, allowed: str) -> None:
        """From the texts of both files. Raises ValueError if the list is not TOML, and re.error for a bad pattern."""
        listed = tomllib.loads(words)
        self._patterns = [
            (re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE), better)
            for pattern, better in listed.get("words", {}).items()
        ]
        self._patterns += [(re.compile(pattern), better) for pattern, better in listed.get("openings", {}).items()]
        lines = (line.partition("#")[0].split() for line in allowed.splitlines())
        self._allowed = [(line[0], " ".join(line[1:])) for line in lines if len(line) > 1]

    @classmethod
    def of_this_repository(cls) -> Words:
        """The list that is checked in."""
        return cls((SETUP / "words.toml").read_text(), (SETUP / "words-allowed.txt").read_text())

    def findings(self, path: str, text: str, lines: set[int] | None = None) -> Iterator[Finding]:
        """The findings in a file, or in the given lines of it."""
        for number, readable in readable_lines(path, text):
            if lines is not None and number not in lines:
                continue
            for pattern, better in self._patterns:
                for match in pattern.finditer(readable):
                    word = match[0].strip(".:; ")
                    if not self._is_allowed(path, word.lower()):
                        yield Finding(path, number, word, better)

    def _is_allowed(self, path: str, word: str) -> bool:
        return any(fnmatch.fnmatch(path, glob) and fnmatch.fnmatch(word, allowed) for glob, allowed in self._allowed)


def readable_lines(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines of a file that people read, with their numbers and without code."""
    suffix = Path(path).suffix
    if suffix == ".md":
        yield from _markdown(text)
    elif suffix == ".py" or text.startswith(("#!/usr/bin/env python", "#!/usr/bin/python")):
        yield from _python(text)
    elif comment := _COMMENT.get(suffix) or (_COMMENT[".sh"] if text.startswith("#!") else None):
        for number, line in enumerate(text.splitlines(), 1):
            strings = _STRING.findall(line) if suffix in (".rs", ".go", ".js", ".ts") else []
            found = [string[1:-1] for string in strings if " " in string.strip()]
            # A string can contain the start of a comment; a URL does, for example.
            if match := comment.search(_STRING.sub('""', line)):
                found.append(match[1])
            for part in found:
                yield number, _SPAN.sub("", part).strip()


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    fence = ""
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r" *(```|~~~)", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1] == fence:
            fence = ""
        elif not fence:
            yield number, _SPAN.sub("", re.sub(r"\]\([^)]*\)", "]", line)).strip()


def _python(text: str) -> Iterator[tuple[int, str]]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return
    f_strings = {tokenize.FSTRING_MIDDLE} if hasattr(tokenize, "FSTRING_MIDDLE") else set()
    for token in tokens:
        if token.type == tokenize.COMMENT:
            yield token.start[0], _SPAN.sub("", token.string.lstrip("#!:")).strip()
        elif token.type == tokenize.STRING or token.type in f_strings:
            inner = token.string.strip("rbfRBF").strip("\"'")
            if " " in inner.strip():
                for offset, line in enumerate(inner.split("\n")):
                    yield token.start[0] + offset, _SPAN.sub("", line).strip()


def changed_lines(root: Path, base: str) -> dict[str, set[int] | None]:
    """The lines of each file that differ from a revision; None for a new file: all of them.

    Raises subprocess.CalledProcessError when there is no such revision.
    """
    found: dict[str, set[int] | None] = {}
    path = ""
    for line in _git(root, "diff", "--unified=0", "--no-color", "--no-ext-diff", "-M", base, "--"):
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else ""
        elif path and (match := _HUNK.match(line)):
            first, count = int(match[1]), int(match[2] or 1)
            lines = found.setdefault(path, set())
            assert lines is not None
            lines |= set(range(first, first + count))
    return found | dict.fromkeys(_git(root, "ls-files", "--others", "--exclude-standard"), None)


def default_base(root: Path) -> str:
    """The commit at which the branch left origin/main; on main itself, or without it, the previous commit."""
    head = _git(root, "rev-parse", "HEAD")[0]
    try:
        base = _git(root, "merge-base", "origin/main", "HEAD")[0]
    except subprocess.CalledProcessError:
        base = head
    return "HEAD~1" if base == head else base


def all_files(root: Path) -> dict[str, set[int] | None]:
    """Every file of the repository, with all of its lines."""
    return dict.fromkeys(_git(root, "ls-files"), None)


def _git(root: Path, *arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()
