"""The extent of the text replaced for a match: "What is replaced" in rust-core/crates/policy/SEMANTICS.md."""

from __future__ import annotations

import importlib
import re
import string
from collections.abc import Callable, Iterable
from typing import Any

from bench.scoring.rules import Rule

#: Python's parser of regular expressions.
_parser: Any = importlib.import_module("re._parser")
_constants: Any = importlib.import_module("re._constants")
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)

_GRAPHIC = "".join(chr(code) for code in range(0x21, 0x7F))
_ENDS_EVERYWHERE = "\"'`\\"
_TOKEN = frozenset(string.ascii_letters + string.digits + "-_+/=~")
_JOINTS = frozenset(".%")
_ESCAPED = {"/": "/", "u002b": "+", "u002f": "/", "u003d": "="}
_ESCAPE = re.compile(r"\\{1,8}(/|u002[BbFf]|u003[Dd])")

#: A function that returns the end of the replaced text, from a text and the end of a match in it.
End = Callable[[str, int], int]


def end_of(rule: Rule) -> End:
    """The function that extends the matches of a rule."""
    match rule.extent:
        case "token":
            return _token_end(rule)
        case "private_key":
            return private_key_end
        case "match":
            return lambda _text, end: end


def _token_end(rule: Rule) -> End:
    if rule.regex is None:
        raise ValueError(f"{rule.id} has no regex")
    last = last_characters(rule.regex)
    taken = (_TOKEN | last) - _JOINTS

    def end(text: str, at: int) -> int:
        begin = at
        while (found := _character(text, at)) is not None:
            character, behind = found
            if at == begin and character not in last:
                break
            if character in _JOINTS:
                found = _character(text, behind)
                if found is None:
                    break
                character, behind = found
            if character not in taken:
                break
            at = behind
        return at

    return end


def _character(text: str, at: int) -> tuple[str, int] | None:
    """A character of a text, plain or as a JSON escape, and the position after it."""
    if escape := _ESCAPE.match(text, at):
        return _ESCAPED[escape[1].lower()], escape.end()
    character = text[at : at + 1]
    return (character, at + 1) if character and character in _GRAPHIC and character != "\\" else None


def last_characters(regex: str) -> set[str]:
    """The characters that the repetitions at the end of a regex, or of its value, match."""
    pattern = _parser.parse(regex.replace("(?<value>", "(?P<value>"), re.ASCII)
    last: set[str] = set()
    _take_last(pattern, pattern.state.groupdict.get("value"), last)
    last |= {character.upper() for character in last}
    return {character for character in last if character in _GRAPHIC and character not in _ENDS_EVERYWHERE}


def _take_last(items: Iterable[Any], value: int | None, last: set[str]) -> bool:
    """Adds the characters that can end a sequence, and returns whether the sequence can be empty."""
    items = list(items)
    holding = [number for number, item in enumerate(items) if _holds(item, value)]
    if holding:
        if any(not _can_be_empty(item) for item in items[holding[0] + 1 :]):
            return False
        items = items[: holding[0] + 1]
    return all(_take_item(item, value, last) for item in reversed(items))


def _take_item(item: Any, value: int | None, last: set[str]) -> bool:
    kind, argument = item
    if kind is _constants.AT:
        return True
    if kind is _constants.SUBPATTERN:
        return _take_last(argument[3], value, last)
    if kind is _constants.BRANCH:
        return any([_take_last(branch, value, last) for branch in argument[1]])
    if kind in _REPEATS:
        least, most, repeated = argument
        can_be_empty = bool(least == 0)
        if least != most:
            if len(repeated) == 1 and repeated[0][0] in (_constants.IN, _constants.NOT_LITERAL, _constants.ANY):
                last |= _members(repeated[0])
            else:
                can_be_empty |= _take_last(repeated, value, last)
        return can_be_empty
    return False


def _members(item: Any) -> set[str]:
    """The printable characters that a class matches."""
    kind, argument = item
    if kind is not _constants.IN:
        return set(_GRAPHIC) - ({chr(argument)} if kind is _constants.NOT_LITERAL else set())
    members: set[str] = set()
    is_negated = False
    for part, value in argument:
        if part is _constants.NEGATE:
            is_negated = True
        elif part is _constants.LITERAL:
            members.add(chr(value))
        elif part is _constants.RANGE:
            members |= {character for character in _GRAPHIC if value[0] <= ord(character) <= value[1]}
        else:
            members |= _CATEGORIES[value]
    return set(_GRAPHIC) - members if is_negated else members


_WORD = {character for character in _GRAPHIC if character.isalnum() or character == "_"}
_CATEGORIES: dict[Any, set[str]] = {
    _constants.CATEGORY_DIGIT: set(string.digits),
    _constants.CATEGORY_NOT_DIGIT: set(_GRAPHIC) - set(string.digits),
    _constants.CATEGORY_WORD: _WORD,
    _constants.CATEGORY_NOT_WORD: set(_GRAPHIC) - _WORD,
    _constants.CATEGORY_SPACE: set(),
    _constants.CATEGORY_NOT_SPACE: set(_GRAPHIC),
}


def _holds(item: Any, group: int | None) -> bool:
    kind, argument = item
    if group is None:
        return False
    if kind is _constants.SUBPATTERN:
        return argument[0] == group or any(_holds(inner, group) for inner in argument[3])
    if kind is _constants.BRANCH:
        return any(_holds(inner, group) for branch in argument[1] for inner in branch)
    return kind in _REPEATS and any(_holds(inner, group) for inner in argument[2])


def _can_be_empty(item: Any) -> bool:
    least, _ = _parser.SubPattern(_parser.State(), [item]).getwidth()
    return bool(least == 0)


_DIGITS = re.compile(r"[A-Za-z0-9+/=]*")
_BETWEEN = re.compile(r"""(?:\\[rnt]|(?!-----END )[\t\n\r \\"'`,\-|>:#*\u2192])*""")
_END = "-----END "


def private_key_end(text: str, at: int) -> int:
    """The end of a private key whose beginning is the text up to `at`."""
    end = at = _behind(_DIGITS, text, at)
    short = 0
    while True:
        at = _behind(_BETWEEN, text, at)
        if text.startswith(_END, at):
            at += len(_END)
            # At most 48 characters of a label, which is ASCII, are checked.
            closing = text.find("-----", at, at + 52)
            return at if closing < 0 else closing + 5
        behind = _behind(_DIGITS, text, at)
        digits = text[at:behind]
        if not digits:
            return end
        if len(digits) >= 16:
            end, short = behind, 0
        elif digits != "+" and not re.fullmatch(r"[0-9]{1,6}", digits):
            short += 1
            if short > 2:
                return end
        at = behind


def _behind(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
