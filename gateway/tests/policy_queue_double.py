"""A stand-in for the core's policy queues, filled by tests."""

from __future__ import annotations

import queue
from typing import Any

Texts = tuple[tuple[str, str, bool], ...]


class PolicyItem:
    def __init__(self, text: str = "hello", tenant: str = "acme") -> None:
        self._tenant = tenant
        self._texts: Texts = ((text, "text", False),)
        self.awaited = True

    @property
    def tenant(self) -> str:
        return self._tenant

    @property
    def model(self) -> str:
        return "gpt-4o-mini"

    @property
    def endpoint(self) -> str:
        return "/v1/chat/completions"

    @property
    def texts(self) -> Texts:
        return self._texts

    def is_awaited(self) -> bool:
        return self.awaited


class PolicyQueue:
    """`batches` contains the batches to take, in order; `returned` contains the verdicts, by text."""

    def __init__(self) -> None:
        self.batches: queue.Queue[list[PolicyItem] | None] = queue.Queue()
        self.returned: queue.Queue[dict[str, Any]] = queue.Queue()
        self.closed = False

    def take_policy_batch(self, most: int, timeout_seconds: float) -> list[PolicyItem] | None:
        assert most > 0
        assert timeout_seconds > 0
        try:
            # A shorter timeout than the real one, so that a stopped thread ends quickly.
            return self.batches.get(timeout=0.01)
        except queue.Empty:
            return []

    def return_verdicts(self, verdicts: list[tuple[PolicyItem, Any]]) -> int:
        self.returned.put({item.texts[0][0]: verdict for item, verdict in verdicts})
        return len(verdicts)

    def close(self) -> None:
        self.closed = True

    def ask(self, *texts: str) -> dict[str, Any]:
        """Returns the verdicts for a batch of these texts."""
        self.batches.put([PolicyItem(text) for text in texts])
        return self.returned.get(timeout=60)
