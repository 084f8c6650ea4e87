"""The samples of gitleaks' rules, read from its Go sources: literals, and patterns that random values are made of."""

from __future__ import annotations

import importlib
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

#: Python's parser of patterns, from which random values are made.
_PARSER = importlib.import_module("re._parser")
#: Minimum characters of a sample; a shorter text is a name in the code around it.
SHORTEST = 16

_TEXT = r'`[^`]*`|"(?:[^"\\\n]|\\.)*"'
_CALL = rf'(?:secrets\.NewSecret|newPlausibleSecret)\(\s*(?:{_TEXT}|utils\.[A-Za-z0-9]+\("[0-9,]+"\))\s*\)'
_PART = rf"(?:{_TEXT}|{_CALL}|strings\.ToUpper\({_CALL}\))"
_CLASSES = {
    "AlphaNumeric": "[a-z0-9]",
    "AlphaNumericExtendedShort": "[a-z0-9_-]",
    "AlphaNumericExtended": "[a-z0-9=_\\-]",
    "AlphaNumericExtendedLong": "[a-z0-9/=_+\\-]",
    "Hex": "[a-f0-9]",
    "Numeric": "[0-9]",
}
#: The forms of a sample, as `GenerateSampleSecrets` of gitleaks makes them.
_FORMS = (
    '{name}_api_token = "{secret}"',
    '"{name}_token": "{secret}"',
    "{name}Token := `{secret}`",
    '{name}_TOKEN = "{secret}"',
    "{name}_TOKEN={secret}",
    "export {name}_TOKEN={secret}",
    "--set {name}Secret={secret}",
    "<{name}Token>{secret}</{name}Token>",
    "{name}_token: {secret}",
    "{name}Token = '{secret}'",
)


def unquoted(text: str) -> str:
    """The text of a Go string literal."""
    if text.startswith("`"):
        return text[1:-1]
    plain = {"n": "\n", "t": "\t", "r": "\r"}
    return re.sub(r"\\(.)", lambda escape: plain.get(escape[1], escape[1]), text[1:-1])


def samples(folder: Path, wanted: str) -> Iterator[tuple[str, int, str]]:
    """Rule, number and text of each sample; `wanted` is `tps` (to be found) or `fps` (not to be)."""
    for path in sorted(folder.rglob("cmd/generate/config/rules/*.go")):
        dice = random.Random(path.stem)
        number = 0
        for block in _blocks(_without_comments(path.read_text()), wanted):
            for text in _texts(block, dice):
                number += 1
                yield path.stem, number, text


def _without_comments(source: str) -> str:
    return re.sub(rf"({_TEXT})|'[^'\n]{{1,4}}'|//[^\n]*", lambda part: part[1] or "", source)


def _blocks(source: str, wanted: str) -> Iterator[str]:
    """The values that are assigned to the variable, each up to the end of its statement."""
    for start in re.finditer(rf"\b{wanted}\s*:?=\s*", source):
        depth, at = 0, start.end()
        while at < len(source):
            literal = re.compile(_TEXT).match(source, at)
            if literal:
                at = literal.end()
                continue
            depth += {"(": 1, "{": 1, ")": -1, "}": -1}.get(source[at], 0)
            if source[at] == "\n" and depth <= 0:
                break
            at += 1
        yield source[start.end() : at]


def _texts(block: str, dice: random.Random) -> Iterator[str]:
    expression = rf"{_PART}(?:\s*\+\s*{_PART})*"
    call = re.compile(rf"utils\.GenerateSampleSecrets?\(\s*(?P<name>{_TEXT})\s*,\s*(?P<value>{expression})\s*\)")
    for sample in call.finditer(block):
        secret, name = _value(sample["value"], dice), unquoted(sample["name"])
        yield from (form.format(name=name, secret=secret) for form in _FORMS)
    rest = call.sub("", block)
    for sample in re.finditer(expression, rest):
        text = _value(sample[0], dice)
        around = rest[: sample.start()].rstrip()[-1:], rest[sample.end() :].lstrip()[:1]
        if len(text) >= SHORTEST and "%s" not in text and "+" not in around and around[1] != ":":
            yield text


def _value(expression: str, dice: random.Random) -> str:
    return "".join(_part(part, dice) for part in re.findall(_PART, expression))


def _part(part: str, dice: random.Random) -> str:
    if part[0] in '`"':
        return unquoted(part)
    helper = re.search(r'utils\.([A-Za-z0-9]+)\("([0-9,]+)"\)', part)
    text = re.search(_TEXT, part)
    pattern = f"{_CLASSES[helper[1]]}{{{helper[2]}}}" if helper else unquoted(text[0]) if text else ""
    value = _random(_PARSER.parse(pattern), dice)
    return value.upper() if part.startswith("strings.ToUpper") else value


def _random(parsed: Any, dice: random.Random) -> str:
    """A text that the pattern matches."""
    made = []
    for kind, argument in parsed:
        match str(kind):
            case "LITERAL":
                made.append(chr(argument))
            case "IN":
                made.append(dice.choice(_members(argument)))
            case "MAX_REPEAT" | "MIN_REPEAT":
                least, most, inner = argument
                made += [_random(inner, dice) for _ in range(dice.randint(least, min(most, least + 40)))]
            case "SUBPATTERN":
                made.append(_random(argument[-1], dice))
            case "BRANCH":
                made.append(_random(dice.choice(argument[1]), dice))
            case _:
                made.append("a")
    return "".join(made)


def _members(parts: Any) -> str:
    members = ""
    for kind, argument in parts:
        match str(kind):
            case "LITERAL":
                members += chr(argument)
            case "RANGE":
                members += "".join(map(chr, range(argument[0], argument[1] + 1)))
            case _:
                members += "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
    return members
