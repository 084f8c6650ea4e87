"""The counts in an export's manifest, computed from records by the same code in the writer and in the
verifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from proofgate.index.filter import OPEN
from proofgate.index.schema import VERDICTS

_END_KINDS = ("completion", "aborted")
#: Names of counts, and their labels in messages.
COUNT_LABELS = {
    "admissions": "admissions",
    "attempts": "further attempts",
    "ends": "ends",
    "refusals": "refusals",
    "open": "exchanges without an end",
    **{f"verdict {verdict}": f"exchanges with the verdict {verdict}" for verdict in VERDICTS},
}


class ExportCounts:
    """Counts of an export's contents, without neighbours."""

    def __init__(self) -> None:
        self._counted: Counter[str] = Counter()

    def add(self, records: Sequence[dict[str, Any]], facts: dict[str, Any]) -> None:
        """Counts one exchange by its records and their facts."""
        kinds = Counter(record["kind"] for record in records)
        self._counted["admissions"] += kinds["admission"]
        self._counted["attempts"] += kinds["attempt"]
        self._counted["refusals"] += kinds["rejection"]
        self._counted["ends"] += sum(kinds[kind] for kind in _END_KINDS)
        self._counted["open"] += facts["outcome"] == OPEN
        self._counted[f"verdict {facts['verdict']}"] += 1

    def to_dict(self) -> dict[str, int]:
        """Returns all counts by name."""
        return {name: self._counted[name] for name in COUNT_LABELS}


def find_count_differences(
    claimed: dict[str, int], found: dict[str, int], words: dict[str, str]
) -> tuple[list[str], str]:
    """Returns the claimed counts that the export does not reach, and a contradiction if it has more than claimed."""
    missing = [
        f"{number - found.get(name, 0)} of {number} {words.get(name, name)}"
        for name, number in claimed.items()
        if found.get(name, 0) < number
    ]
    more = next(
        (
            f"the manifest claims {claimed.get(name, 0)} {words.get(name, name)}, but the export has {number}"
            for name, number in found.items()
            if number > claimed.get(name, 0)
        ),
        "",
    )
    return missing, more
