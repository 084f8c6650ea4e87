"""Random events for every branch of the semantics: prose, mutated examples of rules, noise, encodings."""

from __future__ import annotations

import base64
import random
import string
import tomllib
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import quote, quote_plus

from bench.scoring.engine import Event
from bench.scoring.rules import CRATE, Direction, Rule

_PROSE = """
the of and a to in is you that it he was for on are as with his they I at be this have from or one had by word but not
what all were we when your can said there use an each which she do how their if will up other about out many then them
these so some her would make like him into time has look two more write go see number no way could people my than first
über für größer déjà naïve señor ação città слово пример 文字 中文 日本 שלום مرحبا ελληνικά
print return import select where order { } ( ) == != => -> // /* */ # <div> </p> 0 1 42 3.14 2026-11-20 10:30 99% $5 €7
http://acme.example/a?b=c&d=e ignore instructions system prompt password token secret key send decode
"""
_WORDS = _PROSE.split()
_SPACES = (
    " ",
    " ",
    " ",
    " ",
    "\n",
    "\t",
    "\r\n",
    "  ",
    " \n\n\t",
    "&nbsp;",
    "\u00a0",
    "\u2003",
    "\u3000",
    "\u2028",
    "\x0b",
    "\x0c",
    "\x85",
)
_INVISIBLE = (
    "\u200b\u200c\u200d\u2060\ufeff\u00ad\u202e\u202c\u2066\u034f\ufe0f\U000e0101\U000e007f\0\x1b\x7f\x9b\ufff0"
)
_MARKUP = (
    "*",
    "**",
    "****",
    "`",
    "~~",
    "<b>",
    "</i>",
    "<span class='\u00e9'>",
    "<!-- x -->",
    "<wbr/>",
    "<br>",
    "<b",
    "~",
    "_",
)
_LOOKALIKES: dict[str, str] = tomllib.loads((CRATE / "src" / "homoglyphs.toml").read_text())["homoglyphs"]
_ASSIGNED = [
    chr(code)
    for first, last in ((0x20, 0x24FF), (0x2800, 0x30FF), (0xA000, 0xA4CF), (0xF900, 0xFFFD), (0x1D400, 0x1F2FF))
    for code in range(first, last + 1)
    if unicodedata.category(chr(code)) not in ("Cn", "Cs", "Co")
]

Mutation = Callable[[random.Random, str], str]


def events(rules: Sequence[Rule], count: int, seed: int) -> Iterator[Event]:
    """`count` events; the same for the same rules and seed."""
    dice = random.Random(seed)
    examples = [text for rule in rules for text in (*rule.matching, *rule.not_matching)]
    for _ in range(count):
        direction: Direction = "request" if dice.random() < 0.8 else "response"
        yield Event(_text(dice, examples), direction)


def _text(dice: random.Random, examples: Sequence[str]) -> str:
    parts: list[str] = []
    for _ in range(dice.randint(1, 4)):
        kind = dice.random()
        if kind < 0.35:
            parts.append(prose(dice, dice.randint(1, 25)))
        elif kind < 0.9:
            parts.append(_mutated(dice, _fragment(dice, dice.choice(examples))))
        else:
            parts.append("".join(dice.choices(_ASSIGNED, k=dice.randint(1, 30))))
    return dice.choice(("", " ", "\n", ". ", '"')).join(parts)


def prose(dice: random.Random, words: int) -> str:
    """Words of several languages and of code, with all kinds of spaces between them."""
    return "".join(dice.choice(_WORDS) + dice.choice(_SPACES) for _ in range(words))


def _fragment(dice: random.Random, example: str) -> str:
    if dice.random() < 0.7 or len(example) < 4:
        return example
    start = dice.randrange(len(example) // 2)
    return example[start : dice.randint(start + 1, len(example))]


def _mutated(dice: random.Random, text: str) -> str:
    for _ in range(dice.choice((0, 0, 1, 1, 1, 2, 3))):
        text = dice.choice(_MUTATIONS)(dice, text)
    return text


def _each(share: float, change: Callable[[random.Random, str], str]) -> Mutation:
    """Changes a share of the characters."""
    return lambda dice, text: "".join(change(dice, c) if dice.random() < share else c for c in text)


def _lookalike(dice: random.Random, character: str) -> str:
    return dice.choice(_LOOKALIKES.get(character.lower(), character))


def _full_width(dice: random.Random, character: str) -> str:
    return chr(ord(character) + 0xFEE0) if "!" <= character <= "~" else character


def _styled(dice: random.Random, character: str) -> str:
    if not "a" <= character <= "z":
        return character
    return chr(dice.choice((0x1D41A, 0x24D0, 0x1F170, 0x1F1E6)) + ord(character) - ord("a"))


def _reference(dice: random.Random, character: str) -> str:
    code = ord(character)
    return dice.choice((f"&#{code};", f"&#x{code:x};", f"&#X{code:06X};", f"&#{code}"))


def _tags(dice: random.Random, text: str) -> str:
    return "".join(chr(ord(c) + 0xE0000) if " " <= c <= "~" else c for c in text)


def _base64(dice: random.Random, text: str) -> str:
    encoded = base64.b64encode(text.encode()).decode()
    if dice.random() < 0.4:
        encoded = encoded.rstrip("=").replace("+", "-").replace("/", "_")
    return encoded[dice.randint(0, 1) :] if dice.random() < 0.1 else encoded


def _hex(dice: random.Random, text: str) -> str:
    digits = text.encode().hex()
    return dice.choice(("", "0x", "0X")) + (digits.upper() if dice.random() < 0.3 else digits) + dice.choice(("", "f"))


def _percent(dice: random.Random, text: str) -> str:
    return quote_plus(text) if dice.random() < 0.5 else quote(text, safe="")


def _escapes(dice: random.Random, text: str) -> str:
    slashes = "\\" * dice.choice((1, 1, 2, 4))
    units = text.encode("utf-16-be")
    codes = [int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2)]
    return "".join(
        f"{slashes}x{code:02x}" if code < 256 and dice.random() < 0.2 else f"{slashes}u{code:04x}" for code in codes
    )


def _some_escapes(dice: random.Random, text: str) -> str:
    return "".join(_escapes(dice, c) if dice.random() < 0.3 else c for c in text)


def _long(dice: random.Random, text: str) -> str:
    """A token that is longer than the size at which tokens are cut."""
    return _base64(dice, text * dice.randint(1, 4) + prose(dice, 900)) if dice.random() < 0.02 else text


_DIGITS = ("q7Zt3LmP9xKv2RbN8wYc5Hd4", "Fg6Jk1Qs0VeTuWiXoAyBzCnD")
_SIGNS = ("a", "_", "-", ".", "%", "/", "+", "=", "\\/", "\\u002b", "!", ",")
_ENDS = ("", " ", ".", '"', "\\n", "\n-----END \x50RIVATE KEY-----", "\\u002", "\u00e9")


def _cut_off(dice: random.Random, text: str) -> str:
    """A text whose last value seems longer than its rule can match."""
    line_break = "\n" if dice.random() < 0.3 else ""
    kinds = (_DIGITS if dice.random() < 0.8 else _SIGNS for _ in range(dice.randint(1, 60)))
    return text + "".join(dice.choice(kind) + line_break for kind in kinds) + dice.choice(_ENDS)


_MUTATIONS: tuple[Mutation, ...] = (
    lambda dice, text: text.upper(),
    lambda dice, text: text.swapcase(),
    _each(0.3, lambda dice, c: c.upper()),
    _each(0.2, _lookalike),
    _each(0.8, _lookalike),
    _each(0.5, _full_width),
    _each(0.7, _styled),
    _each(0.2, lambda dice, c: c + dice.choice(_INVISIBLE)),
    _each(0.1, lambda dice, c: c + dice.choice(("\u0301", "\u0308", "\u0327", "\u0483", "\u20dd"))),
    _each(0.2, lambda dice, c: c + dice.choice(_MARKUP)),
    _each(0.2, lambda dice, c: c + dice.choice(_MARKUP) + dice.choice(_MARKUP) if c.isalpha() else c),
    _each(0.3, _reference),
    _each(0.05, lambda dice, c: ""),
    _each(0.05, lambda dice, c: c + c),
    _each(0.05, lambda dice, c: dice.choice(string.printable)),
    _each(0.5, lambda dice, c: dice.choice(string.digits) if c.isdigit() else c),
    lambda dice, text: text.replace(" ", dice.choice(_SPACES)),
    lambda dice, text: unicodedata.normalize("NFD", text),
    _tags,
    _base64,
    _base64,
    _hex,
    _percent,
    _escapes,
    _some_escapes,
    _long,
    _cut_off,
    _cut_off,
)
