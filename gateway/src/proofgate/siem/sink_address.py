"""Parsing of a sink's address: `otlp+https://…` or `otlp+http://…`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from proofgate_schema.urls import is_loopback

from proofgate.siem.sink import EventSink

_SCHEMES = {"otlp+https": "https", "otlp+http": "http"}
_OPTION_NAMES = {"ca", "authorization", "format", "plain"}


class SinkAddressError(ValueError):
    """The text is not the address of a sink. The message says what to write."""


def parse(text: str, ledger: str) -> EventSink:
    """Creates the sink for an address. `ledger` is the name of the ledger whose exchanges it gets. Raises
    SinkAddressError."""
    url = urlsplit(text)
    options = dict(given := parse_qsl(url.query, keep_blank_values=True))
    try:
        host, port = url.hostname or "", url.port
    except ValueError:
        host, port = "", None
    name = f"{url.scheme}://{host}" + (f":{port}" if port else "")
    if url.scheme not in _SCHEMES:
        raise SinkAddressError(f"expected one of {', '.join(_SCHEMES)}, then ://HOST[:PORT]")
    if not host or url.username is not None or url.fragment:
        raise SinkAddressError(f"{name}: expected {url.scheme}://HOST[:PORT]")
    if options.keys() - _OPTION_NAMES or len(given) != len(options):
        raise SinkAddressError(
            f"{name}: parameters after '?' are {', '.join(sorted(_OPTION_NAMES))}, each at most once"
        )
    if url.scheme != "otlp+https" and options.get("plain") != "allow" and not is_loopback(host):
        raise SinkAddressError(f"{name}: use TLS, or plain=allow in a network that you trust")
    authorities = Path(options["ca"]) if options.get("ca") else None
    if authorities is not None and not authorities.is_file():
        raise SinkAddressError(f"{name}: ca: {authorities} is not a file")
    authorization = Path(options["authorization"]) if options.get("authorization") else None
    from proofgate.siem.otlp import ATTRIBUTES_FORMAT, FORMATS, OtlpSink

    form = options.get("format", ATTRIBUTES_FORMAT)
    if form not in FORMATS:
        raise SinkAddressError(f"{name}: format: expected one of {', '.join(FORMATS)}")
    base = f"{_SCHEMES[url.scheme]}://{url.netloc}{url.path}"
    return OtlpSink(f"{name}{url.path}", base, ledger, authorities, authorization, form)
