"""The findings of an export's check, and their comparison with the manifest's claims."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from proofgate.index.export import COMPLETENESS_FILTERS, excluding_filters
from proofgate.index.export_counts import COUNT_LABELS, ExportCounts, find_count_differences
from proofgate.index.filter import Filter


class ExportContradictedError(Exception):
    """The export contradicts its manifest or a signature."""


@dataclass
class RequestNumbers:
    """The numbers of one tenant's admitted and denied requests in one log: all that were seen, and the
    exported ones."""

    seen: set[int] = field(default_factory=set)
    exported: set[int] = field(default_factory=set)


@dataclass
class CheckedExport:
    """The findings of the check of an export."""

    manifest: dict[str, Any]
    signed_by: str | None
    exchanges: int = 0
    records: int = 0
    numbers: dict[tuple[str, str], RequestNumbers] = field(
        default_factory=lambda: defaultdict(RequestNumbers)
    )
    refusals: set[tuple[str, int]] = field(default_factory=set)
    incomplete_exchanges: int = 0
    """Number of exchanges that lack their end or an attempt in the export."""
    counts: ExportCounts = field(default_factory=ExportCounts)
    by_log: Counter[str] = field(default_factory=Counter)
    """Number of records of each log."""
    missing: list[str] = field(default_factory=list)
    """What the manifest claims but the export does not contain."""

    @property
    def is_complete(self) -> bool:
        """Whether the export contains everything that the manifest claims, with the end of each exchange, and
        no log was unreadable."""
        return not self.missing and not self.incomplete_exchanges and not self.unreadable

    @property
    def unreadable(self) -> list[str]:
        """The logs whose exchanges were left out because the logs could not be read."""
        return list(self.manifest.get("unreadable", []))

    @property
    def claims_completeness(self) -> bool:
        """Whether the export's filter allows to show that no admitted or denied request is missing between
        two others."""
        asked = self.manifest["filter"]
        return "tenant" in asked and asked.keys() <= COMPLETENESS_FILTERS

    def gaps(self) -> dict[tuple[str, str], list[int]]:
        """The numbers that are missing between the first and the last request of each tenant in each log."""
        found = {}
        for place, numbers in self.numbers.items():
            missing = len(range(min(numbers.seen), max(numbers.seen) + 1)) - len(numbers.seen)
            if missing:
                lacking = (n for n in range(min(numbers.seen), max(numbers.seen)) if n not in numbers.seen)
                found[place] = list(islice(lacking, 10))
        return found


def compare_counts(
    claimed: dict[str, int], found: dict[str, int], words: dict[str, str], checked: CheckedExport
) -> None:
    """Adds the claimed counts that are not reached to the missing ones. Raises ExportContradictedError if a
    count is exceeded and nothing is missing. If something is missing, a count may be exceeded: an exchange
    without its end counts as open, with another verdict."""
    missing, more = find_count_differences(claimed, found, words)
    if more and not (missing or checked.missing):
        raise ExportContradictedError(more)
    checked.missing += missing


def compare_claims(manifest: dict[str, Any], checked: CheckedExport) -> None:
    """Compares the manifest's claims about kinds, logs and tenants with the records."""
    if "counts" in manifest:
        compare_counts(manifest["counts"], checked.counts.to_dict(), COUNT_LABELS, checked)
        if manifest["left_out"] != excluding_filters(Filter(**manifest["filter"])):
            raise ExportContradictedError("left_out in the manifest does not match its filter")
    words = {origin: f"records of {origin}" for origin in checked.by_log}
    claimed = {log["origin"]: log["records"] for log in manifest["logs"]}
    compare_counts(claimed, dict(checked.by_log), words, checked)
    told = {(of["tenant"], of["origin"]): of for of in manifest["tenants"]}
    if len(told) != len(manifest["tenants"]):
        raise ExportContradictedError("the manifest lists a tenant twice for one log")
    for place in told.keys() | {place for place, of in checked.numbers.items() if of.exported}:
        exported = checked.numbers[place].exported if place in checked.numbers else set()
        _compare_tenant(place, told.get(place), exported, checked)


def _compare_tenant(
    place: tuple[str, str], claim: dict[str, Any] | None, exported: set[int], checked: CheckedExport
) -> None:
    named = f"requests of {place[0]} in {place[1]}"
    claimed = 0 if claim is None else claim["exchanges"]
    compare_counts({named: claimed}, {named: len(exported)}, {}, checked)
    if claim is None or len(exported) < claimed:
        return
    if (min(exported, default=0), max(exported, default=0)) != (claim["first"], claim["last"]):
        raise ExportContradictedError(
            f"the manifest claims {named} from {claim['first']} to {claim['last']}, but the "
            "export has another first or last request"
        )


def require_ledger(manifest: dict[str, Any], key: str) -> None:
    """Raises ExportContradictedError if the manifest names the key of another ledger. The key in the manifest
    is otherwise only a hint."""
    named = manifest["ledger"].partition("+")[0]
    if named != key.partition("+")[0]:
        raise ExportContradictedError(
            f"the manifest names the ledger {named}, but the key belongs to another ledger"
        )
