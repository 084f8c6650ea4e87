"""A map file, such as the digests of keys with their tenants, and HAProxy's copy of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from proofgate.front_door.entries_file import EntriesFile, parse
from proofgate.front_door.target import RefusedError

# A command with its payload has to fit into one buffer of HAProxy, 16 KiB where nothing else is configured.
_BATCH_BYTES = 12_000
_SHOWN_CHANGES = 5
_DIGEST_LENGTH = 64
_SHOWN_LINE = re.compile(r"0x[0-9a-f]+ (\S+) (\S+)")
_NEW_VERSION = re.compile(r"New version created: (\d+)")


class MapFile(EntriesFile):
    """One map; HAProxy knows it by the path of its file, which has to be the same for both."""

    async def bring_in_step(self, content: str) -> str | None:
        wanted = parse(content)
        held = _shown(await self._command(f"show map {self._path}", None, expected=_SHOWN_LINE))
        if held != wanted:
            await self._replace(wanted)
        self._entries = len(wanted)
        return None if held == wanted else _difference(held, wanted)

    async def _replace(self, wanted: Mapping[str, str]) -> None:
        """A version of the map that nobody looks into is filled, and then takes the other's place at once."""
        answer = await self._command(f"prepare map {self._path}", None, expected=_NEW_VERSION)
        found = _NEW_VERSION.search(answer)
        if found is None:
            raise RefusedError("HAProxy made no new version of it")
        version = f"@{found[1]}"
        for batch in _batches(wanted):
            await self._command(f"add map {version} {self._path}", batch)
        await self._command(f"commit map {version} {self._path}", None)

    async def _command(
        self, command: str, payload: str | None, expected: re.Pattern[str] | None = None
    ) -> str:
        answer = await self._api.ask(command, payload)
        if answer and not (expected and expected.match(answer)):
            # Only the first line, and only when it repeats no entry of the map.
            reason = answer.splitlines()[0][:200]
            raise RefusedError(f"HAProxy refuses {command.split()[0]} map: {_shortened(reason)}")
        return answer


def _shown(answer: str) -> dict[str, str]:
    return {found[1]: found[2] for found in map(_SHOWN_LINE.fullmatch, answer.splitlines()) if found}


def _batches(entries: Mapping[str, str]) -> Iterator[str]:
    lines: list[str] = []
    size = 0
    for key, value in entries.items():
        line = f"{key} {value}\n"
        if size + len(line) > _BATCH_BYTES:
            yield "".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line)
    if lines:
        yield "".join(lines)


def _difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    changes = [f"+{_shortened(key)}" for key in after if key not in before]
    changes += [f"-{_shortened(key)}" for key in before if key not in after]
    changes += [f"~{_shortened(key)}" for key in after if before.get(key, after[key]) != after[key]]
    shown = " ".join(changes[:_SHOWN_CHANGES])
    rest = len(changes) - _SHOWN_CHANGES
    return f"{len(after)} entries: {shown}" + (f" and {rest} more" if rest > 0 else "")


def _shortened(text: str) -> str:
    """Digests of keys are cut to eight digits: enough to find one, not to be of use."""
    return re.sub(rf"\b([0-9a-f]{{8}})[0-9a-f]{{{_DIGEST_LENGTH - 8}}}\b", r"\1", text)
