"""The named checks over the matched text (SEMANTICS.md, "Checks")."""

from __future__ import annotations

import base64
import math
import re
import string
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable

from bench.scoring.rules import CRATE

_BASE62 = string.digits + string.ascii_uppercase + string.ascii_lowercase
_DIGIT = re.compile(r"[0-9]")
#: Lowercases only ASCII capitals.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)


def luhn(match: str) -> bool:
    """12 to 19 digits, not all the same, that satisfy ISO/IEC 7812-1."""
    digits = [int(digit) for digit in _DIGIT.findall(match)]
    if not 12 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def mod97(match: str) -> bool:
    """An IBAN (ISO 13616)."""
    symbols = re.findall(r"[A-Za-z0-9]", match)
    if not 15 <= len(symbols) <= 34:
        return False
    return int("".join(str(int(symbol, 36)) for symbol in symbols[4:] + symbols[:4])) % 97 == 1


def ssn(match: str) -> bool:
    """A social security number of the United States that may have been issued."""
    digits = "".join(_DIGIT.findall(match))
    if len(digits) != 9:
        return False
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"


def ipv4(match: str) -> bool:
    """Four numbers of at most 255 without leading zeros, which belong to a host, not to a version."""
    parts = match.split(".")
    if len(parts) != 4 or any(re.fullmatch(r"0|[1-9][0-9]{0,2}", part) is None for part in parts):
        return False
    numbers = [int(part) for part in parts]
    is_large = max(numbers) >= 100 or sum(number >= 40 for number in numbers) >= 2
    return max(numbers) <= 255 and numbers[3] != 0 and is_large


def phone(match: str) -> bool:
    """7 to 15 digits before the first letter, not all the same, in the format of a telephone number."""
    number = re.split(r"[A-Za-z]", match, maxsplit=1)[0]
    digits = _DIGIT.findall(number)
    is_date = re.match(r"(?:19|20)[0-9]{2}[-./ ][0-9]{2}[-./ ][0-9]{2}(?![0-9])", number) is not None
    is_written_so = not is_date and not any(sign in number for sign in ("0000", "/-", "-/"))
    return 7 <= len(digits) <= 15 and len(set(digits)) > 1 and is_written_so and not {".", " "} <= set(number.strip())


def mrz(match: str) -> bool:
    """The second line of a passport with valid check digits (ICAO Doc 9303-3, 4.9)."""
    line = match.upper()
    fields = ((0, 9), (13, 19), (21, 27))
    return all(line[end] == str(_weighted(line[start:end]) % 10) for start, end in fields)


def _weighted(field: str) -> int:
    values = (0 if symbol == "<" else int(symbol, 36) for symbol in field)
    return sum(value * (7, 3, 1)[place % 3] for place, value in enumerate(values))


def entropy(match: str) -> bool:
    """At least 3.5 bits of Shannon entropy for each byte."""
    raw = match.encode()
    shares = [count / len(raw) for count in Counter(raw).values()]
    return -sum(share * math.log2(share) for share in shares) >= 3.5 - 1e-9


def mixed(match: str) -> bool:
    """Both letters and digits."""
    return re.search(r"[A-Za-z]", match) is not None and _DIGIT.search(match) is not None


def github(match: str) -> bool:
    """A token of GitHub: the last six of 36 characters are the CRC-32 of the others in base62."""
    token = match.partition("_")[2] or match
    if len(token) != 36:
        return entropy(match)
    number, digits = zlib.crc32(token[:30].encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return token[30:] == digits


def jwt(match: str) -> bool:
    """Three parts, or a long beginning of them, the first of which is the base64url of a JSON object with an `alg`."""
    header, *others = match.split(".")
    whole = header[: len(header) - (len(header) % 4 == 1)]
    decoded = base64.urlsafe_b64decode(whole + "=" * (-len(whole) % 4))
    is_signed = len(others) == 2 and others[1] != ""
    is_long = len(others) in (1, 2) and len(others[0]) >= 204
    has_name = re.fullmatch(rb'\{.*"alg"[ \t\n\r]*:.*\}', decoded, re.DOTALL) is not None
    return (is_signed or is_long) and has_name


def mailbox(match: str) -> bool:
    """A mail address alone, not one in a URL or a remote."""
    return ":" not in match


_PAIRS: dict[str, str] = tomllib.loads((CRATE / "src" / "letter_pairs.toml").read_text())
_SIGN = re.compile(rb"[^a-z0-9_./:, -]")


def random(match: str) -> bool:
    """Random characters, not words."""
    raw = match.translate(_LOWER).encode()
    is_hex = re.fullmatch(rb"[0-9a-f-]+", raw) is not None and len(raw) - raw.count(b"-") >= 32
    has_both = re.search(rb"[a-z]", raw) is not None and re.search(rb"[0-9]", raw) is not None
    if len(set(raw)) < 6 or b"..." in raw:
        return False
    signs = re.sub(rb"%[0-9a-f]{2}", b"%", raw)
    weights = (_weight(signs[i : i + 1], signs[i + 1 : i + 2]) for i in range(len(signs) - 1))
    return (is_hex and has_both) or sum(weights) >= 16


def _weight(first: bytes, second: bytes) -> int:
    kinds = {kind for kind in (b"a-z", b"0-9") for byte in (first, second) if re.match(b"[" + kind + b"]", byte)}
    both_known = all(re.match(rb"[a-z0-9]", byte) for byte in (first, second))
    if both_known and kinds == {b"a-z"}:
        return -4 if second.decode() in _PAIRS[first.decode()] else 9
    if both_known and len(kinds) == 2:
        return 7
    return 4 if (_SIGN.match(first) is None) != (_SIGN.match(second) is None) else 0


CHECKS: dict[str, Callable[[str], bool]] = {
    "Luhn": luhn,
    "Mod97": mod97,
    "Mailbox": mailbox,
    "Ssn": ssn,
    "Ipv4": ipv4,
    "Phone": phone,
    "Mrz": mrz,
    "Entropy": entropy,
    "Mixed": mixed,
    "GitHub": github,
    "Jwt": jwt,
    "Random": random,
}
