"""The auditor's mirrors: its command's options for them, their files, and the network access to them."""

from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

from proofgate_operator.api.mirrors import Mirror
from proofgate_operator.api.upstream import CA_FILE
from proofgate_operator.build import egress_destinations
from proofgate_operator.build.naming import Manifest

_DEFAULT_PORTS = {"https": 443, "http": 80}


def _folder(number: int) -> str:
    return f"/etc/auditor-mirrors/{number}"


def options(mirrors: tuple[Mirror, ...]) -> Iterator[str]:
    """Yield the arguments of the auditor's command."""
    for number, mirror in enumerate(mirrors):
        lock = mirror.object_lock
        told = {
            "lock": lock.mode.value.lower(),
            "days": str(lock.days),
            "endpoint": mirror.endpoint,
            "region": mirror.region,
            "credentials": _folder(number),
            **({"http": "allow"} if mirror.allow_http else {}),
            **({"ca": f"{_folder(number)}/{CA_FILE}"} if egress_destinations.has_custom_ca(mirror) else {}),
        }
        yield from ("--mirror", f"s3://{mirror.bucket}/{mirror.prefix}?{urlencode(told, safe=':/')}")


def mounts(mirrors: tuple[Mirror, ...]) -> list[Manifest]:
    """Return the mounts of the files."""
    return [egress_destinations.mount(f"mirror-{number}", _folder(number)) for number in range(len(mirrors))]


def volumes(mirrors: tuple[Mirror, ...]) -> list[Manifest]:
    """Return the volumes of the files."""
    return [
        egress_destinations.volume(
            f"mirror-{number}",
            mirror,
            {"secret": {"name": mirror.credentials_secret_ref.name, "optional": True}},
        )
        for number, mirror in enumerate(mirrors)
    ]


def egress(mirrors: tuple[Mirror, ...]) -> list[Manifest]:
    """Return the network policy rules that let the auditor connect to the mirrors."""
    urls = [(mirror, urlsplit(mirror.endpoint)) for mirror in mirrors]
    return [
        egress_destinations.egress_rule(url.port or _DEFAULT_PORTS[url.scheme], mirror.egress)
        for mirror, url in urls
    ]
