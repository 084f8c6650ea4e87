"""A sink as its user names it: `otlp+https://…`, `syslog+tls://…` and others."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from proofgate.config.fields import is_loopback
from proofgate.siem.sink import Sink

_DEFAULT_PORTS = {"syslog+tls": 6514, "syslog+tcp": 601, "syslog+udp": 514}
_OTLP = {"otlp+https": "https", "otlp+http": "http"}
_ENCRYPTED = {"otlp+https", "syslog+tls"}
_NAMES = {"ca", "authorization", "plain"}


class PlaceError(ValueError):
    """It names no sink. Says what to write."""


def parse(text: str, ledger: str) -> Sink:
    """The sink that a text names; `ledger` is whose exchanges it gets. Raises PlaceError."""
    url = urlsplit(text)
    options = dict(given := parse_qsl(url.query, keep_blank_values=True))
    kinds = ", ".join([*_OTLP, *_DEFAULT_PORTS])
    try:
        host, port = url.hostname or "", url.port
    except ValueError:
        host, port = "", None
    name = f"{url.scheme}://{host}" + (f":{port}" if port else "")
    if url.scheme not in _OTLP and url.scheme not in _DEFAULT_PORTS:
        raise PlaceError(f"expected one of {kinds}, then ://HOST[:PORT]")
    if not host or url.username is not None or url.fragment:
        raise PlaceError(f"{name}: expected {url.scheme}://HOST[:PORT]")
    if options.keys() - _NAMES or len(given) != len(options):
        raise PlaceError(f"{name}: behind '?' stand {', '.join(sorted(_NAMES))}, each once")
    if url.scheme not in _ENCRYPTED and options.get("plain") != "allow" and not is_loopback(host):
        raise PlaceError(f"{name}: use TLS, or plain=allow in a network that you trust")
    authorities = Path(options["ca"]) if options.get("ca") else None
    if authorities is not None and not authorities.is_file():
        raise PlaceError(f"{name}: ca: {authorities} is no file")
    authorization = Path(options["authorization"]) if options.get("authorization") else None
    if url.scheme in _OTLP:
        from proofgate.siem.otlp import Otlp

        base = f"{_OTLP[url.scheme]}://{url.netloc}{url.path}"
        return Otlp(f"{name}{url.path}", base, ledger, authorities, authorization)
    if url.path.strip("/") or authorization is not None:
        raise PlaceError(f"{name}: syslog has no path and no authorization")
    from proofgate.siem.syslog import Datagrams, Stream

    port = port or _DEFAULT_PORTS[url.scheme]
    if url.scheme == "syslog+udp":
        return Datagrams(name, host, port)
    return Stream(name, host, port, tls=url.scheme == "syslog+tls", authorities=authorities)
