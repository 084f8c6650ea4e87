"""A tenant's API keys as the workers know them, and the file that holds them."""

import math
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class KeyDigest:
    """An API key as the workers know it: its SHA-256 in lower-case hexadecimal, and when it expires.

    `expires` is a time of RFC 3339; None is never. `name` is what its tenant calls it.
    """

    digest: str
    not_after: str | None = None
    name: str = field(default="", compare=False)

    @property
    def expires_at(self) -> float:
        """When it expires, in seconds since 1970."""
        return datetime.fromisoformat(self.not_after).timestamp() if self.not_after else math.inf

    @property
    def line(self) -> str:
        """The key's line in the workers' file, without its name."""
        return self.digest if self.not_after is None else f"{self.digest} expires={self.not_after}"

    @property
    def named_line(self) -> str:
        """The same with its name, in a comment: workers of versions that know no names pass it over."""
        return f"{self.line} # name={self.name}" if self.name else self.line


def keys_entry(tenant: str) -> str:
    """Return the entry of the tenants Secret, and the file, that holds a tenant's keys.

    The Secret is mounted whole, so that another tenant does not change the pods' template. A tenant's name
    has no dot: no file can hide another one.
    """
    return f"{tenant}.keys"
