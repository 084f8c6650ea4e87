"""The views of a text, from the same table that the engine embeds (SEMANTICS.md, "Views of a text")."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from bench.scoring.rules import CRATE

_PLAIN = {code: chr(code).lower() for code in range(128)} | {code: " " for code in (9, 10, 11, 12, 13)}
_TAG_OFFSET = 0xE0000


def plain(text: str) -> str:
    """The text with ASCII letters in lower case and ASCII whitespace as spaces; as long as the text."""
    return text.translate(_PLAIN)


class Copy(NamedTuple):
    """The normalised copy of a text that rules with the view `folded` run over.

    `starts` and `ends` are, for each character of the copy, where in the text that begins and ends which it was made
    from, in characters.
    """

    text: str
    starts: list[int]
    ends: list[int]


def folded(text: str) -> str:
    """The normalised copy of a text, without the positions in the text."""
    return folded_copy(text).text


def folded_copy(text: str) -> Copy:
    """The normalised copy of a text."""
    copy: list[tuple[str, int, int]] = []
    for character, start, end in _characters(text):
        for letter in fold(character):
            if letter != " " or not copy or copy[-1][0] != " ":
                copy.append((letter, start, end))
    hidden = {
        place
        for markup in _MARKUP_IN_WORD.finditer("".join(letter for letter, _, _ in copy))
        for place in range(markup.start(), markup.end())
    }
    kept = [entry for place, entry in enumerate(copy) if place not in hidden]
    return Copy("".join(letter for letter, _, _ in kept), [start for _, start, _ in kept], [end for _, _, end in kept])


def _characters(text: str) -> Iterator[tuple[str, int, int]]:
    """The characters of a text, including those of its character references, each with its position."""
    place = 0
    while place < len(text):
        reference = _REFERENCE.match(text, place) if text[place] == "&" else None
        character = _referred(reference) if reference else None
        end = reference.end() if reference and character else place + 1
        yield character or text[place], place, end
        place = end


def _referred(reference: re.Match[str]) -> str | None:
    decimal, hexadecimal, name = reference.groups()
    if name is not None:
        return _ENTITIES.get(name)
    code = int(decimal, 10) if decimal is not None else int(hexadecimal, 16)
    return chr(code) if code < 0xD800 or 0xE000 <= code < 0x110000 else None


@cache
def fold(character: str) -> str:
    """The folded form of a single character: no character, one, or several."""
    code = ord(character)
    if code in _DROPPED:
        return ""
    if code < 128:
        return _PLAIN[code]
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
    if code in _DROPPED:
        return ""
    if code < 128:
        return _PLAIN[code]
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
_ENTITIES = {name: chr(code) for name, written in _TABLE["entities"].items() for code in _codes([written])}
_REFERENCE = re.compile(r"&(?:#([0-9]{1,8})|#[xX]([0-9A-Fa-f]{1,8})|([A-Za-z]+));")
_INLINE = "a|abbr|b|big|code|del|em|font|i|ins|mark|s|small|span|strike|strong|sub|sup|tt|u|wbr"
_MARKUP = rf"\*{{1,3}}|`{{1,3}}|~~|</?(?:{_INLINE})(?:[ /][^<>]{{0,62}})?>|<!--[^<>]{{0,62}}-->"
_LETTER = "[a-z\u0080-\U0010ffff]"
_MARKUP_IN_WORD = re.compile(f"(?<={_LETTER})(?:{_MARKUP}){{1,4}}(?={_LETTER})")
