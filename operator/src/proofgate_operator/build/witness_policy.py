"""Validates the trust policy of an auditor's witnesses (c2sp.org/tlog-policy), before an auditor is replaced
by one that would not start.

    log <vkey> [<url>]
    witness <name> <vkey> [<url>]
    group <name> all|any|<k> <name>...
    quorum <name>|none

The auditor's own check is authoritative, and refuses everything that is refused here.
"""

import base64
import hashlib
import ipaddress
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

#: The maximum number of logs, witnesses and groups that the format asks all parsers to support.
_MAX_ENTRIES = 32
#: Types of keys, and the length of each in bytes including the type.
_LOG_KEY_LENGTHS = {b"\x01": 33}
_WITNESS_KEY_LENGTHS = {b"\x04": 33, b"\x06": 1313}
_EXPECTED_ARGUMENTS = {
    "log": "log VKEY [URL]",
    "witness": "witness NAME VKEY [URL]",
    "group": "group NAME all|any|K NAME...",
    "quorum": "quorum NAME, or quorum none",
}
_DEFAULT_PORTS = {"https": 443, "http": 80}


class InvalidWitnessPolicy(ValueError):
    """A text is not a policy that an auditor can use; the message gives the reason and the line."""


@dataclass(frozen=True)
class _Group:
    threshold: int
    members: tuple["_Rule", ...]


#: A witness, as its index in the policy, or a group.
_Rule = int | _Group


@dataclass
class _PolicyParser:
    allow_http: bool
    #: The text of each log's key, keyed by the key itself.
    logs: dict[bytes, str] = field(default_factory=dict)
    #: The key of each witness, and the port of its URL: None without a URL, 0 on the pod itself.
    witnesses: list[tuple[bytes, int | None]] = field(default_factory=list)
    group_count: int = 0
    names: dict[str, _Rule] = field(default_factory=dict)
    members: set[str] = field(default_factory=set)
    #: Empty before the quorum line.
    quorum: list[_Rule | None] = field(default_factory=list)

    def parse_line(self, text: str) -> None:
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f]", text):
            raise InvalidWitnessPolicy("a control character other than tab")
        match re.findall(r"[^ \t]+", text):
            case []:
                pass
            case [first, *_] if first.startswith("#"):
                pass
            case ["log", key] | ["log", key, _]:
                self._parse_log(key)
            case ["witness", name, key]:
                self._parse_witness(name, key, None)
            case ["witness", name, key, url]:
                self._parse_witness(name, key, _parse_port(url, self.allow_http))
            case ["group", name, least, *members] if members:
                self._parse_group(name, least, members)
            case ["quorum", name]:
                self._parse_quorum(name)
            case [keyword, *_] if keyword in _EXPECTED_ARGUMENTS:
                raise InvalidWitnessPolicy(f"expected: {_EXPECTED_ARGUMENTS[keyword]}")
            case _:
                raise InvalidWitnessPolicy("expected a line that begins with log, witness, group or quorum")

    def _parse_log(self, key: str) -> None:
        public = _parse_key(key, _LOG_KEY_LENGTHS)
        if public in self.logs:
            raise InvalidWitnessPolicy("another log line has this public key")
        _check_capacity(len(self.logs), "logs")
        self.logs[public] = key

    def _parse_witness(self, name: str, key: str, port: int | None) -> None:
        public = _parse_key(key, _WITNESS_KEY_LENGTHS)
        if any(public == other for other, _ in self.witnesses):
            raise InvalidWitnessPolicy("another witness line has this public key")
        _check_capacity(len(self.witnesses), "witnesses")
        self._define(name, len(self.witnesses))
        self.witnesses.append((public, port))

    def _parse_group(self, name: str, least: str, members: list[str]) -> None:
        count = {"any": "1", "all": str(len(members))}.get(least, least)
        if not re.fullmatch(r"[1-9][0-9]{0,3}", count) or int(count) > len(members):
            raise InvalidWitnessPolicy(f"expected all, any, or a number from 1 to {len(members)}")
        _check_capacity(self.group_count, "groups")
        self.group_count += 1
        rules = tuple(self._add_member(member) for member in members)
        self._define(name, _Group(int(count), rules))

    def _add_member(self, name: str) -> _Rule:
        rule = self._resolve(name)
        if name in self.members:
            raise InvalidWitnessPolicy(f"{name} is already a member of a group")
        self.members.add(name)
        return rule

    def _parse_quorum(self, name: str) -> None:
        if self.quorum:
            raise InvalidWitnessPolicy("there is already a quorum line")
        self.quorum.append(None if name == "none" else self._resolve(name))

    def _define(self, name: str, rule: _Rule) -> None:
        if name == "none" or name in self.names:
            raise InvalidWitnessPolicy(f"the name {name} is taken")
        self.names[name] = rule

    def _resolve(self, name: str) -> _Rule:
        if name not in self.names:
            raise InvalidWitnessPolicy(f"no line above defines {name}")
        return self.names[name]

    def has_reachable_quorum(self, rule: _Rule | None) -> bool:
        """Return whether the witnesses with a URL can form a quorum."""
        if isinstance(rule, _Group):
            return sum(self.has_reachable_quorum(member) for member in rule.members) >= rule.threshold
        return rule is None or self.witnesses[rule][1] is not None


def parse_witness_ports(text: str, auditor_key: str | None, allow_http: bool) -> tuple[int, ...]:
    """Return the TCP ports of a policy's witnesses, sorted; raises `InvalidWitnessPolicy`.

    `auditor_key` is the verifying key of the log that they cosign; None if it is not known.
    """
    reader = _PolicyParser(allow_http)
    for number, line in enumerate(text.split("\n"), 1):
        try:
            reader.parse_line(line)
        except InvalidWitnessPolicy as error:
            raise InvalidWitnessPolicy(f"line {number}: {error}") from None
    if not reader.quorum:
        raise InvalidWitnessPolicy("there is no quorum line")
    if reader.logs and auditor_key and auditor_key not in reader.logs.values():
        raise InvalidWitnessPolicy(f"no log line has the auditor's key: add `log {auditor_key}`")
    if not reader.has_reachable_quorum(reader.quorum[0]):
        raise InvalidWitnessPolicy(
            "the witnesses that have a URL cannot form a quorum, so nothing would ever be published"
        )
    return tuple(sorted({port for _, port in reader.witnesses if port}))


def _check_capacity(there: int, what: str) -> None:
    if there == _MAX_ENTRIES:
        raise InvalidWitnessPolicy(f"more than {_MAX_ENTRIES} {what}")


def _parse_key(text: str, kinds: dict[bytes, int]) -> bytes:
    """Parse the public key of `<name>+<hash>+<base64(kind || public key)>` (c2sp.org/signed-note)."""
    name, _, rest = text.partition("+")
    key_hash, _, encoded = rest.partition("+")
    try:
        body = base64.b64decode(encoded, validate=True)
    except ValueError:
        body = b""
    if not name or len(body) != kinds.get(body[:1]):
        expected = (
            "Ed25519, type 0x04, as `proofgate keys generate --witness` creates it, or ML-DSA-44, type 0x06"
            if kinds is _WITNESS_KEY_LENGTHS
            else "Ed25519, type 0x01, as `proofgate keys generate` creates it"
        )
        raise InvalidWitnessPolicy(f"a key does not have the form name+hash+base64, {expected}")
    if hashlib.sha256(name.encode() + b"\n" + body).digest()[:4].hex() != key_hash:
        raise InvalidWitnessPolicy("the hash of a key does not match its name and key")
    return body[1:]


def _parse_port(text: str, allow_http: bool) -> int:
    """Return the port of a witness's URL, 0 on the pod itself. Messages do not quote the URL."""
    try:
        url = urlsplit(text)
        host, port = url.hostname or "", url.port
    except ValueError:
        host, port = "", 0
    if not host or port == 0 or url.scheme not in _DEFAULT_PORTS or not re.fullmatch(r"[!-~]+", text):
        raise InvalidWitnessPolicy("write an http or https URL, for example https://witness.example.com")
    if url.username is not None or url.password is not None:
        raise InvalidWitnessPolicy("remove the user name and password from the URL")
    if url.query or url.fragment:
        raise InvalidWitnessPolicy("remove '?' or '#' and everything after it from the URL")
    local = _is_loopback(host)
    if url.scheme != "https" and not allow_http and not local:
        raise InvalidWitnessPolicy("use https, or set allowHttp in a network that you trust")
    return 0 if local else port or _DEFAULT_PORTS[url.scheme]


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
