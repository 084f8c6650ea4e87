"""A ledger as the retention job changes it: logs are removed, and salts are destroyed."""

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
    """A ledger, its verifying key, the text of the retention key, and the retention job with the holds."""

    directory: Path
    key: str
    signing_key: str
    retention: _core.RetentionState
    #: SHA-256 of the statements in the auditor's log; None if no statement waits for that log.
    anchored: set[str] | None = None

    @classmethod
    def from_options(cls, options: argparse.Namespace) -> RetentionLedger:
        """What `arguments.add_ledger` has names. Raises UsageError, EvidenceError and KeepingError."""
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
        """Plans which logs go that are older than `days`, and removes them. Raises as the core does."""
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
        """Plans which salts are destroyed, and destroys them: of an exchange, or of a tenant up to a time, or
        so far. `policy` has the minimums; None overrides them. Raises as the core does."""
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
        """States holds and releases on the ledger; how many were not yet. Raises as the core does."""
        return self.retention.state_holds(str(self.directory), self.key, self.signing_key, arguments.now())
