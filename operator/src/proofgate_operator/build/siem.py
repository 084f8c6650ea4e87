"""The auditor's sinks: its command's options for them, their files, and the network access to them."""

from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

from proofgate_operator.api.siem import Sink
from proofgate_operator.api.upstream import CA_FILE
from proofgate_operator.build import egress_destinations
from proofgate_operator.build.naming import Manifest

_DEFAULT_PORTS = {"otlp+https": 443, "otlp+http": 80}
_AUTHORIZATION = "authorization"


def _folder(number: int) -> str:
    return f"/etc/auditor-siem/{number}"


def _has_files(sink: Sink) -> bool:
    return sink.authorization_secret_ref is not None or egress_destinations.has_custom_ca(sink)


def options(sinks: tuple[Sink, ...]) -> Iterator[str]:
    """Yield the arguments of the auditor's command."""
    for number, sink in enumerate(sinks):
        told = {
            **(
                {_AUTHORIZATION: f"{_folder(number)}/{_AUTHORIZATION}"}
                if sink.authorization_secret_ref
                else {}
            ),
            **({"ca": f"{_folder(number)}/{CA_FILE}"} if egress_destinations.has_custom_ca(sink) else {}),
            **({"format": sink.format.lower()} if sink.format != "Attributes" else {}),
            **({"plain": "allow"} if sink.allow_plain else {}),
        }
        yield from ("--siem", sink.url + (f"?{urlencode(told, safe='/')}" if told else ""))


def mounts(sinks: tuple[Sink, ...]) -> list[Manifest]:
    """Return the mounts of the files."""
    return [
        egress_destinations.mount(f"siem-{number}", _folder(number))
        for number, sink in enumerate(sinks)
        if _has_files(sink)
    ]


def volumes(sinks: tuple[Sink, ...]) -> list[Manifest]:
    """Return the volumes of the files."""
    found = []
    for number, sink in enumerate(sinks):
        reference, sources = sink.authorization_secret_ref, []
        if reference is not None:
            items = [{"key": reference.key, "path": _AUTHORIZATION}]
            sources.append({"secret": {"name": reference.name, "items": items, "optional": True}})
        if _has_files(sink):
            found.append(egress_destinations.volume(f"siem-{number}", sink, *sources))
    return found


def egress(sinks: tuple[Sink, ...]) -> list[Manifest]:
    """Return the network policy rules that let the auditor connect to the sinks."""
    found = []
    for sink in sinks:
        url = urlsplit(sink.url)
        found.append(egress_destinations.egress_rule(url.port or _DEFAULT_PORTS[url.scheme], sink.egress))
    return found
