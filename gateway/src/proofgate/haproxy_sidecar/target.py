"""What the agent keeps in step: a file, and what HAProxy holds of it."""

from __future__ import annotations

from typing import Any, Protocol

# HAProxy may have been restarted, or somebody may have used its socket: it is asked what it holds.
CHECK_SECONDS = 5.0


class RefusedError(Exception):
    """A file is not usable, or HAProxy does not take it: what it holds stays. Repeats nothing secret."""

    code = "refused"


class SyncTarget(Protocol):
    """A file that HAProxy read at its start."""

    @property
    def name(self) -> str:
        """What metrics and the log call it."""

    @property
    def check_seconds(self) -> float:
        """How often HAProxy is asked what it holds while the content stays as it is."""

    def read(self) -> Any:
        """The content now, to be compared with `==`; None while it is being replaced.

        Raises RefusedError when it cannot be read.
        """

    async def reconcile(self, content: Any) -> str | None:
        """Lets HAProxy hold `content`; says what was changed, or None when it held that already.

        Raises RefusedError and UnreachableError; HAProxy then holds what it held before.
        """

    def errors(self) -> list[str]:
        """What is wrong with parts of the last content that was read, whose former content counts."""

    def gauges(self) -> dict[str, float]:
        """Figures of what HAProxy holds, by the ends of their metrics' names."""
