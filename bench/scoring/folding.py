"""The views of a text, from the same table that the engine embeds (SEMANTICS.md, "Views of a text")."""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Iterable
from functools import cache

from bench.scoring.rules import CRATE

_PLAIN = {code: chr(code).lower() for code in range(128)} | {code: " " for code in (9, 10, 11, 12, 13)}
_TAG_OFFSET = 0xE0000


def plain(text: str) -> str:
    """The text with ASCII letters in lower case and ASCII whitespace as spaces; as long as the text."""
    return text.translate(_PLAIN)


def folded(text: str) -> str:
    """The normalised copy of a text that rules with the view `folded` run over."""
    return "".join(map(fold, text))


@cache
def fold(character: str) -> str:
    """What one character becomes in the folded copy: nothing, one character, or several."""
    code = ord(character)
    if code < 128:
        return _PLAIN[code]
    if code in _DROPPED:
        return ""
    if code in _WHITESPACE:
        return " "
    if code in _TAGS:
        return fold(chr(code - _TAG_OFFSET))
    if character in _LETTERS:
        return _LETTERS[character]
    decomposed = unicodedata.normalize("NFKD", character)
    bare = unicodedata.normalize("NFC", "".join(c for c in decomposed if ord(c) not in _MARKS))
    return "".join(map(_part, bare))


def _part(character: str) -> str:
    """One character of what a character decomposes into."""
    code = ord(character)
    if code < 128:
        return _PLAIN[code]
    if code in _DROPPED:
        return ""
    if code in _WHITESPACE:
        return " "
    return _LETTERS.get(character, character.lower())


def _codes(entries: Iterable[str]) -> frozenset[int]:
    found: set[int] = set()
    for entry in entries:
        first, _, last = entry.partition("-")
        begin = int(first.removeprefix("U+"), 16)
        end = int(last.removeprefix("U+"), 16) if last else begin
        found.update(range(begin, end + 1))
    return frozenset(found)


_TABLE = tomllib.loads((CRATE / "src" / "homoglyphs.toml").read_text())
_DROPPED = _codes(_TABLE["dropped"])
_WHITESPACE = _codes(_TABLE["whitespace"])
_MARKS = _codes(_TABLE["marks"])
_TAGS = _codes([_TABLE["tags"]])
_LETTERS: dict[str, str] = {
    chr(first + distance): chr(ord("a") + distance)
    for first in sorted(_codes(_TABLE["alphabets"]))
    for distance in range(26)
} | {glyph: letter for letter, glyphs in _TABLE["homoglyphs"].items() for glyph in glyphs}
