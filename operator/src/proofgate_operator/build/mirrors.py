"""The auditor's mirrors: what its command says of them, the files that they need, and whom it may call."""

from collections.abc import Iterator
from urllib.parse import urlencode, urlsplit

from proofgate_operator.api.mirrors import Mirror
from proofgate_operator.api.upstream import CA_FILE
from proofgate_operator.build.naming import Manifest

_FOLDER = "/etc/auditor-mirrors"
_MODE = 0o440
_DEFAULT_PORTS = {"https": 443, "http": 80}


def _folder(number: int) -> str:
    return f"{_FOLDER}/{number}"


def options(mirrors: tuple[Mirror, ...]) -> Iterator[str]:
    """Return the arguments of the command."""
    for number, mirror in enumerate(mirrors):
        lock = mirror.object_lock
        told = {
            "lock": lock.mode.value.lower(),
            "days": str(lock.days),
            "endpoint": mirror.endpoint,
            "region": mirror.region,
            "credentials": _folder(number),
            **({"http": "allow"} if mirror.allow_http else {}),
            **(
                {"ca": f"{_folder(number)}/{CA_FILE}"}
                if mirror.ca_secret_ref or mirror.ca_config_map_ref
                else {}
            ),
        }
        yield from ("--mirror", f"s3://{mirror.bucket}/{mirror.prefix}?{urlencode(told, safe=':/')}")


def mounts(mirrors: tuple[Mirror, ...]) -> list[Manifest]:
    """Return where the files are mounted."""
    return [
        {"name": f"mirror-{number}", "mountPath": _folder(number), "readOnly": True}
        for number in range(len(mirrors))
    ]


def volumes(mirrors: tuple[Mirror, ...]) -> list[Manifest]:
    """Return the volumes of the files. What is missing keeps no auditor from starting: it says so itself."""
    found = []
    for number, mirror in enumerate(mirrors):
        sources: list[Manifest] = [{"secret": {"name": mirror.credentials_secret_ref.name, "optional": True}}]
        for kind, reference in (("secret", mirror.ca_secret_ref), ("configMap", mirror.ca_config_map_ref)):
            if reference is not None:
                wanted = [{"key": reference.key, "path": CA_FILE}]
                sources.append({kind: {"name": reference.name, "items": wanted, "optional": True}})
        found.append({"name": f"mirror-{number}", "projected": {"defaultMode": _MODE, "sources": sources}})
    return found


def egress(mirrors: tuple[Mirror, ...]) -> list[Manifest]:
    """Return the rules of the network policy that let the auditor reach them."""
    found = []
    for mirror in mirrors:
        url = urlsplit(mirror.endpoint)
        port = url.port or _DEFAULT_PORTS[url.scheme]
        rule: Manifest = {"ports": [{"port": port, "protocol": "TCP"}]}
        if mirror.egress is not None:
            rule["to"] = [{"ipBlock": {"cidr": cidr}} for cidr in mirror.egress.allow]
        found.append(rule)
    return found
