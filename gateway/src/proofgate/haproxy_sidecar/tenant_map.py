"""A map, such as key digests with their tenants, and HAProxy's copy of it."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from proofgate_schema.counts import format_count

from proofgate.haproxy_sidecar.map_sources import MapSources, SourceContents
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi
from proofgate.haproxy_sidecar.startup_map_file import StartupMapFile
from proofgate.haproxy_sidecar.target import CHECK_SECONDS, RefusedError

# A command with its payload must fit into one buffer of HAProxy, by default 16 KiB.
_BATCH_BYTES = 12_000
# A map of at most this size is compared and replaced completely. HAProxy 2.6 scans all entries for each entry
# that is set or deleted, so a large change also replaces the whole map.
_SMALL_MAP_ENTRIES = 1000
_MAX_INCREMENTAL_CHANGES = 200
# Seconds between two requests for all entries of a large map, which detect manual changes over HAProxy's
# socket. In between, only the map's version and its number of entries are requested.
_FULL_CHECK_SECONDS = 300.0
_MAX_LISTED_CHANGES = 5
_DIGEST_LENGTH = 64
_MAP_LINE = re.compile(r"0x[0-9a-f]+ (\S+) (\S+)")
_SUMMARY_LINE = re.compile(
    r"-?\d+ \((?P<path>[^)]*)\).* curr_ver=(?P<version>\d+) .*entry_cnt=(?P<count>\d+)"
)
_NEW_VERSION = re.compile(r"New version created: (\d+)")


@dataclass(frozen=True)
class _SyncedState:
    """HAProxy's content at the last sync: its own summary, and the contents of the files."""

    instance_id: object
    version: int
    count: int
    contents: SourceContents
    checked_at: float


class MapFile:
    """The target for one map. HAProxy identifies the map by the path of its file, which must be the same for
    HAProxy and the agent.

    With `shards`, the folder of tenants that change at run time, the map also has their entries. With `kept`,
    HAProxy loads that file at its start, and the agent writes the desired entries to it.
    """

    check_seconds = CHECK_SECONDS

    def __init__(
        self,
        path: Path,
        api: RuntimeApi,
        shards: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        kept: Path | None = None,
    ) -> None:
        self._path = path
        self._known_by = path if kept is None else kept
        self._kept = None if kept is None else StartupMapFile(kept, clock)
        self._api = api
        self._sources = MapSources(path, shards)
        self._clock = clock
        self._entries = 0
        self._known: _SyncedState | None = None

    @property
    def name(self) -> str:
        return self._path.name

    def read(self) -> SourceContents:
        content = self._sources.read()
        if self._kept is not None:
            self._kept.save(content, self._sources.merged_entries)
        return content

    def digest(self, content: SourceContents) -> str:
        """SHA-256 of the map's own file, in hexadecimal; shards are not part of it."""
        return hashlib.sha256(content[0]).hexdigest()

    def errors(self) -> list[str]:
        trouble = self._kept.trouble if self._kept else None
        return self._sources.errors() + ([trouble] if trouble else [])

    def gauges(self) -> dict[str, float]:
        return {"entries": self._entries, "refused_shards": len(self._sources.errors())}

    async def reconcile(self, content: SourceContents) -> str | None:
        known, self._known = self._known, None
        small = self._entries <= _SMALL_MAP_ENTRIES and len(content) == 1
        if known is not None and not small and await self._is_unchanged(known):
            changes = self._sources.changes(known.contents, content)
            if changes is not None and _is_small_change(*changes):
                await self._apply_changes(*changes)
                await self._record_state(content, known.checked_at)
                return _describe_changes(self._entries, *changes) if changes[0] != changes[1] else None
        return await self._sync_full(content)

    async def _sync_full(self, content: SourceContents) -> str | None:
        wanted = await asyncio.to_thread(self._sources.merged_entries, content)
        held = _parse_map(await self._command(f"show map {self._known_by}", None, expected=_MAP_LINE))
        if held != wanted:
            await self._replace(wanted)
        self._entries = len(wanted)
        if len(wanted) > _SMALL_MAP_ENTRIES or len(content) > 1:
            await self._record_state(content, self._clock())
        return None if held == wanted else _describe_changes(len(wanted), held, wanted)

    async def _is_unchanged(self, known: _SyncedState) -> bool:
        """Whether HAProxy's content is unchanged, according to the map's version and number of entries."""
        if (
            self._api.instance_id() != known.instance_id
            or self._clock() - known.checked_at >= _FULL_CHECK_SECONDS
        ):
            return False
        return await self._summary() == (known.version, known.count)

    async def _record_state(self, content: SourceContents, checked_at: float) -> None:
        version, count = await self._summary()
        if count != self._entries:
            raise RefusedError(f"HAProxy has {format_count(count, 'entry')} instead of {self._entries}")
        self._known = _SyncedState(self._api.instance_id(), version, count, content, checked_at)

    async def _summary(self) -> tuple[int, int]:
        """The version of the map and the number of its entries."""
        for line in (await self._api.send_command("show map")).splitlines():
            found = _SUMMARY_LINE.match(line)
            if found and found["path"] == str(self._known_by):
                return int(found["version"]), int(found["count"])
        raise RefusedError("HAProxy does not report this map")

    async def _apply_changes(self, before: Mapping[str, str], after: Mapping[str, str]) -> None:
        """Changes the differing entries one by one: first the additions, then the removals."""
        added = {key: value for key, value in after.items() if key not in before}
        for batch in _batches(f"{key} {value}\n" for key, value in added.items()):
            await self._command(f"add map {self._known_by}", "".join(batch))
        commands = [
            f"set map {self._known_by} {key} {value}; "
            for key, value in after.items()
            if before.get(key, value) != value
        ]
        gone = [key for key in before if key not in after]
        commands += [f"del map {self._known_by} {key}; " for key in gone]
        for batch in _batches(commands):
            await self._command("".join(batch).removesuffix("; "), None)
        self._entries += len(added) - len(gone)

    async def _replace(self, wanted: Mapping[str, str]) -> None:
        """Fills a new version of the map that is not in use yet, and then replaces the old version
        atomically."""
        answer = await self._command(f"prepare map {self._known_by}", None, expected=_NEW_VERSION)
        found = _NEW_VERSION.search(answer)
        if found is None:
            raise RefusedError("HAProxy created no new version of the map")
        version = f"@{found[1]}"
        for batch in _batches(f"{key} {value}\n" for key, value in wanted.items()):
            await self._command(f"add map {version} {self._known_by}", "".join(batch))
        await self._command(f"commit map {version} {self._known_by}", None)

    async def _command(
        self, command: str, payload: str | None, expected: re.Pattern[str] | None = None
    ) -> str:
        answer = await self._api.send_command(command, payload)
        if answer and not (expected and expected.match(answer)):
            # Report only the first line, and only if it contains no entry of the map.
            reason = answer.splitlines()[0][:200]
            raise RefusedError(f"HAProxy refuses {command.split()[0]} map: {_shorten_digests(reason)}")
        return answer


def _parse_map(answer: str) -> dict[str, str]:
    return {found[1]: found[2] for found in map(_MAP_LINE.fullmatch, answer.splitlines()) if found}


def _is_small_change(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    searched = sum(after.get(key) != value for key, value in before.items())
    return searched <= _MAX_INCREMENTAL_CHANGES


def _batches(texts: Iterable[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


def _describe_changes(entries: int, before: Mapping[str, str], after: Mapping[str, str]) -> str:
    changes = [f"+{_shorten_digests(key)}" for key in after if key not in before]
    changes += [f"-{_shorten_digests(key)}" for key in before if key not in after]
    changes += [f"~{_shorten_digests(key)}" for key in after if before.get(key, after[key]) != after[key]]
    shown = " ".join(changes[:_MAX_LISTED_CHANGES])
    rest = len(changes) - _MAX_LISTED_CHANGES
    return f"{format_count(entries, 'entry')}: {shown}" + (f" and {rest} more" if rest > 0 else "")


def _shorten_digests(text: str) -> str:
    """Shortens key digests to eight digits, which suffice to find a key but not to use it."""
    return re.sub(rf"\b([0-9a-f]{{8}})[0-9a-f]{{{_DIGEST_LENGTH - 8}}}\b", r"\1", text)
