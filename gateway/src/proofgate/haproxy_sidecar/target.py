"""The targets that the agent syncs: a file, and its content in HAProxy."""

from __future__ import annotations

from typing import Any, Protocol

# Seconds between two checks of HAProxy's content, which a restart or another user of its socket may have
# changed.
CHECK_SECONDS = 5.0


class RefusedError(Exception):
    """A file is unusable or refused by HAProxy, whose content stays unchanged. The message repeats no
    secret."""

    code = "refused"


class SyncTarget(Protocol):
    """A file that HAProxy read at its start."""

    @property
    def name(self) -> str:
        """The target's name in metrics and in the log."""

    @property
    def check_seconds(self) -> float:
        """Seconds between two checks of HAProxy's content while the file is unchanged."""

    def read(self) -> Any:
        """Returns the current content, which is compared with `==`; None while the file is being replaced.

        Raises RefusedError if the file cannot be read.
        """

    async def reconcile(self, content: Any) -> str | None:
        """Syncs HAProxy with `content`. Returns a description of the changes; None if there were none.

        Raises RefusedError and UnreachableError; HAProxy then keeps its previous content.
        """

    def errors(self) -> list[str]:
        """Errors of those parts of the newest content for which the previous content stays in use."""

    def gauges(self) -> dict[str, float]:
        """Gauges about HAProxy's content, by the suffixes of their metrics' names."""
