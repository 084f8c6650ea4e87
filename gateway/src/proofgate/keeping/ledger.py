"""The retention job's changes of a ledger: removal of logs, destruction of salts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proofgate import _core, evidence
from proofgate.keeping import arguments

#: The planned or completed action on each log, as reported by the core.
Logs = list[dict[str, Any]]


@dataclass(frozen=True, repr=False)
class RetentionLedger:
    """A ledger, its verifying key, the text of the retention key, and the retention state with the holds."""

    directory: Path
    key: str
    signing_key: str
    retention: _core.RetentionState
    #: SHA-256 of the statements in the auditor's log; None if no statement waits for that log.
    anchored: set[str] | None = None

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> RetentionLedger:
        """Opens the ledger from the arguments of `arguments.add_ledger`. Raises UsageError, EvidenceError and
        KeepingError."""
        retention = arguments.open_retention_state(options.state, options.ledger)
        key = evidence.read_verifying_key(options.ledger_key)
        anchored = arguments.anchored_statements(options)
        return cls(options.ledger, key, arguments.read_signing_key(options.signing_key), retention, anchored)

    def prune(
        self,
        days: int,
        minimums: Mapping[str, int],
        why: arguments.Justification,
        against: Sequence[Path] = (),
        *,
        carry_out: bool,
    ) -> Logs:
        """Plans the removal of logs that are older than `days`, and with `carry_out` removes them. Raises the
        core's errors."""
        logs: Logs = json.loads(
            self.retention.prune(
                str(self.directory),
                self.key,
                self.signing_key,
                days,
                dict(minimums),
                why,
                [(str(path), evidence.read_text(path)) for path in against],
                arguments.now(),
                carry_out,
                self.anchored,
            )
        )
        return logs

    def erase(
        self,
        exchange: str | None,
        tenant: tuple[str, int | None] | None,
        policy: tuple[int, Mapping[str, int]] | None,
        why: arguments.Justification,
        *,
        carry_out: bool,
    ) -> Logs:
        """Plans the destruction of salts, and with `carry_out` destroys them. They are the salts of an
        exchange, or of a tenant up to a time, or up to now. `policy` has the minimum retentions; None
        overrides them. Raises the core's errors."""
        logs: Logs = json.loads(
            self.retention.erase(
                str(self.directory),
                self.key,
                self.signing_key,
                exchange,
                tenant,
                None if policy is None else (policy[0], dict(policy[1])),
                why,
                arguments.now(),
                carry_out,
                self.anchored,
            )
        )
        return logs

    def write_hold_statements(self) -> int:
        """Writes missing statements about holds and releases to the ledger. Returns how many were missing.
        Raises the core's errors."""
        return self.retention.state_holds(str(self.directory), self.key, self.signing_key, arguments.now())
