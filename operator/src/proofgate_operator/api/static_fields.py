"""Header and body fields that requests to an upstream always carry, as frozen models."""

from typing import Annotated, Any

from pydantic import Field

from proofgate_operator.api.fields import SecretKeyRef, Section, keyed_by
from proofgate_operator.api.pod_template import OpenObject
from proofgate_operator.api.reserved_fields import RESERVED_HEADERS, RESERVED_PREFIXES, is_read

_HEADER = r"^[A-Za-z0-9]([-A-Za-z0-9_]*[A-Za-z0-9])?$"
_VALUE = "^[!-~]([ -~]*[!-~])?$"
#: Folder of the values of header fields that are secret, among the files of a provider in the workers.
HEADERS_FOLDER = "headers"


class ProviderHeader(Section):
    """A header field of every request to an upstream."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern=_HEADER)]
    """Its name, for example OpenAI-Organization. None of credentials, of the connection, or that the workers
    write themselves."""
    value: Annotated[str | None, Field(min_length=1, max_length=4096, pattern=_VALUE)] = None
    """Its value, where it is no secret."""
    secret_ref: SecretKeyRef | None = None
    """Its value, where it is a secret: one line of printable ASCII, at most 4096 characters. Mounted, and
    used when it changes, as keys are; while it is missing, nothing is sent to the upstream."""

    @property
    def file(self) -> str:
        """Where workers find its value among the files of the provider."""
        return f"{HEADERS_FOLDER}/{self.name.lower()}"


Headers = Annotated[tuple[ProviderHeader, ...], Field(max_length=16, json_schema_extra=keyed_by("name"))]
BodyFields = OpenObject


def read_by_workers(fields: dict[str, Any]) -> str | None:
    """Return the first name that clients set and workers read; None without one."""
    return next((name for name in fields if is_read(name)), None)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


#: Rules over these fields of one provider.
STATIC_RULES = (
    {
        "rule": "self.headers.all(h, has(h.value) != has(h.secretRef))",
        "message": "providers: a header has either value or secretRef",
    },
    {
        "rule": "self.headers.all(h, self.headers.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",
        "message": "providers: a header is named once, in whatever case",
    },
    {
        "rule": f"self.headers.all(h, !(h.name.lowerAscii() in [{_listed(RESERVED_HEADERS)}]"
        + "".join(f" || h.name.lowerAscii().startsWith('{prefix}')" for prefix in RESERVED_PREFIXES)
        + "))",
        "message": "providers: the workers write this header themselves, or it belongs to auth or to the"
        " connection",
    },
)
