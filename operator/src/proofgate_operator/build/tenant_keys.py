"""A tenant's API keys in the form that workers read, and the file that contains them."""

import math
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True)
class KeyDigest:
    """An API key in the form that workers read: its SHA-256 in lower-case hexadecimal, and its expiry.

    `not_after` is an RFC 3339 time; None: it never expires. `name` is the tenant's name for the key.
    """

    digest: str
    not_after: str | None = None
    name: str = field(default="", compare=False)

    @property
    def expires_at(self) -> float:
        """The expiry in seconds since 1970; infinity if it never expires."""
        return datetime.fromisoformat(self.not_after).timestamp() if self.not_after else math.inf

    @property
    def line(self) -> str:
        """The key's line in the workers' file, without its name."""
        return self.digest if self.not_after is None else f"{self.digest} expires={self.not_after}"

    @property
    def named_line(self) -> str:
        """The same line with the name in a comment, which workers of older versions ignore."""
        return f"{self.line} # name={self.name}" if self.name else self.line


def keys_entry(tenant: str) -> str:
    """Return the entry of the tenants Secret, and the file, with a tenant's keys.

    The whole Secret is mounted, so that an additional tenant does not change the pod template. A tenant's
    name contains no dot, so no file can hide another one.
    """
    return f"{tenant}.keys"
