"""A sink as its user names it: `otlp+https://…` or `otlp+http://…`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from proofgate_schema.urls import is_loopback

from proofgate.siem.sink import Sink

_OTLP = {"otlp+https": "https", "otlp+http": "http"}
_NAMES = {"ca", "authorization", "format", "plain"}


class PlaceError(ValueError):
    """It names no sink. Says what to write."""


def parse(text: str, ledger: str) -> Sink:
    """The sink that a text names; `ledger` is whose exchanges it gets. Raises PlaceError."""
    url = urlsplit(text)
    options = dict(given := parse_qsl(url.query, keep_blank_values=True))
    try:
        host, port = url.hostname or "", url.port
    except ValueError:
        host, port = "", None
    name = f"{url.scheme}://{host}" + (f":{port}" if port else "")
    if url.scheme not in _OTLP:
        raise PlaceError(f"expected one of {', '.join(_OTLP)}, then ://HOST[:PORT]")
    if not host or url.username is not None or url.fragment:
        raise PlaceError(f"{name}: expected {url.scheme}://HOST[:PORT]")
    if options.keys() - _NAMES or len(given) != len(options):
        raise PlaceError(f"{name}: parameters after '?' are {', '.join(sorted(_NAMES))}, each at most once")
    if url.scheme != "otlp+https" and options.get("plain") != "allow" and not is_loopback(host):
        raise PlaceError(f"{name}: use TLS, or plain=allow in a network that you trust")
    authorities = Path(options["ca"]) if options.get("ca") else None
    if authorities is not None and not authorities.is_file():
        raise PlaceError(f"{name}: ca: {authorities} is not a file")
    authorization = Path(options["authorization"]) if options.get("authorization") else None
    from proofgate.siem.otlp import ATTRIBUTES, FORMATS, Otlp

    form = options.get("format", ATTRIBUTES)
    if form not in FORMATS:
        raise PlaceError(f"{name}: format: expected one of {', '.join(FORMATS)}")
    base = f"{_OTLP[url.scheme]}://{url.netloc}{url.path}"
    return Otlp(f"{name}{url.path}", base, ledger, authorities, authorization, form)
