"""Header fields of all requests to an upstream, as a manifest defines them: secret values are in Secrets."""

from typing import Annotated, Any

import proofgate_schema.static_fields
from proofgate_schema.fields import TupleOf, unique_by
from proofgate_schema.reserved_fields import RESERVED_HEADERS, RESERVED_PREFIXES, is_read_by_gateway
from pydantic import Field

from proofgate_operator.api.fields import SecretKeyRef

#: Folder of the secret header values among a provider's files in the workers.
HEADERS_FOLDER = "headers"


class ProviderHeader(proofgate_schema.static_fields.ProviderHeader):
    """A header field of every request to a provider."""

    secret_ref: SecretKeyRef | None = None
    """Entry of a Secret with the value, if the value is secret: one line of printable ASCII, at most 4096
    characters. The entry is mounted as a file into the workers and never copied, and changes are used within
    seconds. While the entry is missing, no request is sent to the provider."""

    @property
    def file(self) -> str:
        """The path of the value among the provider's files in the workers."""
        return f"{HEADERS_FOLDER}/{self.name.lower()}"


Headers = Annotated[TupleOf[ProviderHeader], Field(max_length=16), unique_by("name")]


def find_reserved_header(fields: dict[str, Any]) -> str | None:
    """Return the first name that clients set and workers read; None if there is none."""
    return next((name for name in fields if is_read_by_gateway(name)), None)


def _quoted_list(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


#: Rules over the header fields of one provider.
STATIC_FIELD_RULES = (
    {
        "rule": "self.headers.all(h, has(h.value) != has(h.secretRef))",
        "message": "providers: a header must have either value or secretRef",
    },
    {
        "rule": "self.headers.all(h, self.headers.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",
        "message": "providers: each header may be listed once, regardless of case",
    },
    {
        "rule": f"self.headers.all(h, !(h.name.lowerAscii() in [{_quoted_list(RESERVED_HEADERS)}]"
        + "".join(f" || h.name.lowerAscii().startsWith('{prefix}')" for prefix in RESERVED_PREFIXES)
        + "))",
        "message": "providers: headers must not contain credentials, headers of the connection, or headers "
        "that the workers write",
    },
)
