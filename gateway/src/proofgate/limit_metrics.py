"""Metrics of each tenant's used limits, as Prometheus text.

The core returns the use as a document (`Worker.limit_use`). Each kind of limit (`LIMIT_KINDS`) in it becomes
two series, so a new kind needs no change here. Only tenants that have used a limit have series. The document
lists a requested number of them, highest use first.

Each scrape requests a new document, because Prometheus assigns the time of the scrape to each sample, and an
older document would be wrong. Without a response in time, there are no series, and `proofgate_limits_read` is
0.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

from proofgate.daemon_thread import run_in_daemon_thread
from proofgate.limit_kinds import LIMIT_KINDS

#: Maximum seconds to wait for the core, which may be reading or writing its files of limits. Alerts about
#: this volume must not wait.
TIMEOUT_SECONDS = 0.5
_NANODOLLARS = 1_000_000_000

#: The labels of a tenant or namespace, and the part of the document about it.
_Subject = tuple[dict[str, str], dict[str, Any]]


class LimitMetrics:
    """Requests the used limits at every scrape, one request at a time, and omits them without a response in
    time."""

    def __init__(self, limit_use: Callable[[int], str | bytes], most: int) -> None:
        self._limit_use = limit_use
        self._most = most
        self._asked: asyncio.Task[str | bytes] | None = None

    async def render(self) -> str:
        """Renders the series, and whether the core has answered; only the latter if the core fails or is
        late."""
        document = await self._document()
        lines = [
            *_availability_lines(document is not None),
            *(_lines(document) if document is not None else ()),
        ]
        return "".join(f"{line}\n" for line in lines)

    async def _document(self) -> dict[str, Any] | None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                # Wait for the response to an earlier scrape, which is not used, because only one request runs
                # at a time.
                while self._asked is not None and not self._asked.done():
                    await asyncio.wait({self._asked})
                asked = asyncio.create_task(
                    run_in_daemon_thread(lambda: self._limit_use(self._most), "limits")
                )
                self._asked = asked
                await asyncio.wait({asked})
        except TimeoutError:
            return None
        if asked.exception() is not None:
            return None
        document: dict[str, Any] = json.loads(asked.result())
        return document


def _availability_lines(is_answered: bool) -> Iterator[str]:
    name = "proofgate_limits_read"
    yield f"# HELP {name} Whether the series of limits could be read for this scrape (1) or not (0)."
    yield f"# TYPE {name} gauge"
    yield f"{name} {int(is_answered)}"


def _lines(document: dict[str, Any]) -> Iterator[str]:
    tenants = [({"tenant": one["tenant"]}, one) for one in document.get("tenants", ())]
    yield from _families("proofgate_limit", "a tenant's limit", tenants)
    shared = [
        ({"tenant_namespace": one["namespace"], "plan": one["plan"]}, one)
        for one in document.get("namespaces", ())
    ]
    yield from _families("proofgate_shared_limit", "a limit that a namespace's tenants share", shared)


def _families(prefix: str, whose: str, subjects: list[_Subject]) -> Iterator[str]:
    limits = [(labels, [*_limits(document)]) for labels, document in subjects]
    in_use = [(labels, found) for labels, found in limits if any(used for _, used, _ in found)]
    for suffix, text, part in (("used", "Used part", 0), ("maximum", "Maximum", 1)):
        name = f"{prefix}_{suffix}"
        yield f"# HELP {name} {text} of {whose}, in the unit that the limit's name states."
        yield f"# TYPE {name} gauge"
        for labels, found in in_use:
            for limit, *values in found:
                pairs = (labels | {"limit": limit}).items()
                text_of_labels = ",".join(f'{label}="{_escaped(value)}"' for label, value in pairs)
                yield f"{name}{{{text_of_labels}}} {values[part]}"


def _limits(document: dict[str, Any]) -> Iterator[tuple[str, float, float]]:
    """Yields each limit: its name in the manifest, the used and the allowed amount; money in dollars."""
    for kind in LIMIT_KINDS:
        found = document.get(kind.field)
        if found is not None:
            scale = _NANODOLLARS if kind.is_money else 1
            yield kind.alias, found["used"] / scale, found["limit"] / scale


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
