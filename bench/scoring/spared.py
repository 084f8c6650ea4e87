"""Values that a rule does not match by exception (SEMANTICS.md, "Matches of a rule in one text")."""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Callable
from dataclasses import dataclass

from bench.scoring.folding import folded
from bench.scoring.rules import CRATE, Rule

_KNOWN: dict[str, list[str]] = tomllib.loads((CRATE / "src" / "documentation.toml").read_text())
#: Lowercases only ASCII capitals.
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_ENDS_URL = "\t\n\f\r \"'<>()`"
_ADDRESS = re.compile(rf"(?P<local>[a-z0-9._%+-]*)@(?P<mail>[a-z0-9.-]*)|[a-z0-9]*://(?P<rest>[^{_ENDS_URL}]*)")
_EXAMPLE = re.compile(r"(?:.*\.)?example\.(?:[^.]*|(?:ac|co|com|edu|gov|net|org)\.[a-z]{2})", re.DOTALL)


@dataclass(frozen=True)
class Allow:
    """The values that a policy's `allow` excludes from all rules."""

    values: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Address:
    """A mail address or, with an empty `local`, a URL."""

    whole: str
    local: str
    host: str


def spares(rule: Rule, allow: Allow) -> Callable[[str], bool]:
    """Whether a rule does not match a value of its view."""
    values = set(allow.values if rule.view == "text" and rule.regex is not None else map(folded, allow.values))
    domains = [domain.translate(_LOWER) for domain in allow.domains]
    patterns = [
        re.compile(".*".join(map(re.escape, pattern.translate(_LOWER).split("*"))), re.DOTALL)
        for pattern in allow.patterns
    ]

    def is_allowed(address: Address) -> bool:
        like = any(pattern.fullmatch(address.whole) for pattern in patterns)
        return like or any(_is_within(address.host, domain) for domain in domains)

    def is_spared(value: str) -> bool:
        lower = value.translate(_LOWER)
        if value in values:
            return True
        if rule.pack == "secrets":
            return rule.spares_documentation and is_published(lower)
        return _all_addresses(lower, is_allowed) or (rule.spares_documentation and is_documentation(lower))

    return is_spared


def is_documentation(lower: str) -> bool:
    """Whether personal data, in lower case, belongs to no person."""
    is_network = lower.startswith(tuple(_KNOWN["networks"])) and not lower.strip("0123456789abcdef.:")
    is_number = not lower.strip("0123456789 -")
    is_card = is_number and re.sub("[ -]", "", lower) in _KNOWN["cards"]
    return is_network or is_card or _all_addresses(lower, _is_nobodys)


def is_published(lower: str) -> bool:
    """Whether a credential, in lower case, is a published example."""
    return lower in _KNOWN["keys"] or any(part in lower for part in _KNOWN["parts"])


def _is_nobodys(address: Address) -> bool:
    return (
        address.local.partition("+")[0] in _KNOWN["mailboxes"]
        or any(_is_within(address.host, domain) for domain in _KNOWN["domains"])
        or "noreply" in address.host.split(".")
        or _EXAMPLE.fullmatch(address.host) is not None
    )


def _is_within(host: str, domain: str) -> bool:
    return host == domain or host.endswith(f".{domain}")


def _all_addresses(lower: str, is_such: Callable[[Address], bool]) -> bool:
    addresses = [_address(match) for match in _ADDRESS.finditer(lower)]
    return bool(addresses) and all(map(is_such, addresses))


def _address(match: re.Match[str]) -> Address:
    if match["rest"] is None:
        return Address(match[0], match["local"], match["mail"].rstrip("."))
    authority = re.split("[/?#]", match["rest"], maxsplit=1)[0]
    return Address(match[0], "", authority.rpartition("@")[2].partition(":")[0])
