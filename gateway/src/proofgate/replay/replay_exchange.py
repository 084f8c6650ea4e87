"""The records of one exchange in a ledger."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from proofgate import _core


@dataclass(frozen=True)
class ReplayExchange:
    """An exchange whose records a checkpoint covers."""

    core: _core.RecordedExchange
    start_record: dict[str, Any]
    """The `admission` or the `rejection` of the exchange."""
    completion_record: dict[str, Any] | None

    @classmethod
    def from_core(cls, core: _core.RecordedExchange) -> ReplayExchange:
        """Parses the records of an exchange."""
        completion = core.completion
        return cls(
            core, json.loads(core.first_record), None if completion is None else json.loads(completion)
        )

    @property
    def id(self) -> str:
        """The request id."""
        return str(self.start_record["id"])

    @property
    def was_admitted(self) -> bool:
        """Whether the request was admitted."""
        return bool(self.start_record["kind"] == "admission")

    @property
    def is_committed(self) -> bool:
        """Whether the record commits to the request, which is the case for an admitted request and for one
        that a policy denied."""
        return self.was_admitted or "request" in self.start_record

    @property
    def tenant(self) -> str | None:
        """The tenant; None if it is unknown."""
        return self.start_record.get("tenant")

    @property
    def model(self) -> str | None:
        """The requested model; None for requests that were refused for another reason than a policy."""
        return self.start_record.get("model")

    def body_length(self, answer: bool) -> int | None:
        """The size of a body in bytes; None for a response without a record."""
        record = self.completion_record if answer else self.start_record
        return None if record is None else int(record["bytes"])
