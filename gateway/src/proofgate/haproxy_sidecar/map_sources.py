"""The sources of a map's entries: its own file, and 32 shards of tenants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from proofgate.haproxy_sidecar.entries_file import parse_entries
from proofgate.haproxy_sidecar.target import RefusedError

SHARD_COUNT = 32
# The maximum size of a Secret.
_MAX_SHARD_BYTES = 1 << 20
_TENANT = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?/[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_KEY_LINE = re.compile(rf"([0-9a-f]{{64}}) ({_TENANT}) [a-z0-9-]{{1,63}}(?: not_after=[1-9][0-9]{{0,18}})?")
# The value of the entry for a tenant's name is the name itself.
_TENANT_LINE = re.compile(rf"(?=({_TENANT}) )({_TENANT}) [a-z0-9-]{{1,63}}")
_OWNER_LINE = re.compile(rf"({_TENANT}) ([A-Za-z0-9._-]{{1,253}})")


@dataclass(frozen=True)
class ShardFileFormat:
    """The file and the lines in a shard that contain a map's entries.

    A line's first group is the entry, and the second its value.
    """

    file: str
    line: re.Pattern[str]


#: The formats by map name. A tenant that is named in a token is found by its name. No name looks like a
#: digest.
SHARD_FILE_FORMATS = {
    "tenants.map": (
        ShardFileFormat("keys", _KEY_LINE),
        ShardFileFormat("tenants", _TENANT_LINE),
    ),
    "owners.map": (ShardFileFormat("owners", _OWNER_LINE),),
}

#: The content of every source, the map's own file first. If two contents are the same object, they are equal.
SourceContents = tuple[bytes, ...]
FileStat = tuple[int, int, int, int] | None


@dataclass
class _Source:
    path: Path
    number: int | None
    format: ShardFileFormat | None = None
    stat: FileStat | str = "never"
    content: bytes = b""
    error: str | None = None


class MapSources:
    """The files of one map. An unusable file of a shard is reported, and its previous content stays in
    use."""

    def __init__(self, path: Path, shards: Path | None) -> None:
        self._own = _Source(path, None)
        self._sources = [self._own]
        if shards is not None:
            self._sources += [
                _Source(shards / f"{number:02}" / shape.file, number, shape)
                for shape in SHARD_FILE_FORMATS.get(path.name, ())
                for number in range(SHARD_COUNT)
            ]

    def read(self) -> SourceContents:
        """Returns the contents of the files. Files of shards with an unchanged stat result are not read
        again.

        Raises RefusedError if the map's own file cannot be read.
        """
        for source in self._sources:
            look = _stat_file(source.path)
            if look == source.stat and source.number is not None:
                continue
            self._read(source)
            source.stat = look
        return tuple(source.content for source in self._sources)

    def _read(self, source: _Source) -> None:
        try:
            content = source.path.read_bytes()
        except (FileNotFoundError, NotADirectoryError) as error:
            if source.number is None:
                raise RefusedError(f"{source.path} cannot be read: {error.strerror}") from None
            content = b""
        except OSError as error:
            problem = f"{source.path} cannot be read: {error.strerror}"
            if source.number is None:
                raise RefusedError(problem) from None
            source.error = problem
            return
        source.error = None
        if content == source.content:
            return
        if source.number is not None:
            try:
                self.parse_source(source, content)
            except RefusedError as error:
                source.error = f"shard {source.number:02}: {error}"
                return
        source.content = content

    def parse_source(self, source: _Source, content: bytes) -> dict[str, str]:
        """Parses the entries in the content of a source: the map's own file or a shard's. Raises
        RefusedError."""
        try:
            text = content.decode("ascii")
        except UnicodeDecodeError:
            raise RefusedError(f"{self._own.path} cannot be read: it is not ASCII") from None
        if source.number is None or source.format is None:
            return parse_entries(text)
        return _parse_shard(text, source.format)

    def merged_entries(self, contents: SourceContents) -> dict[str, str]:
        """Returns the desired entries of the map. An entry of the map's own file takes precedence over
        entries of shards, and an entry of a shard over entries of later shards."""
        entries: dict[str, str] = {}
        for source, content in zip(self._sources[:0:-1], contents[:0:-1], strict=True):
            entries |= self.parse_source(source, content)
        return entries | self.parse_source(self._own, contents[0])

    def changes(
        self, before: SourceContents, after: SourceContents
    ) -> tuple[dict[str, str], dict[str, str]] | None:
        """Returns the old and the new entries of the shards that differ. None if the map's own file differs,
        because its entries may be in any shard, or if an entry is in two shards."""
        if before[0] != after[0]:
            return None
        old: dict[str, str] = {}
        new: dict[str, str] = {}
        same = []
        for source, was, now in zip(self._sources[1:], before[1:], after[1:], strict=True):
            if was is now:
                same.append(now)
                continue
            for entries, content in ((old, was), (new, now)):
                found = self.parse_source(source, content)
                if entries.keys() & found.keys():
                    return None
                entries |= found
        # An entry that is added in a second shard would be in HAProxy twice, and removal from one shard would
        # delete both.
        if any(_contains_entry(content, key.encode()) for key in old.keys() ^ new.keys() for content in same):
            return None
        for key in self.parse_source(self._own, after[0]) if old or new else ():
            old.pop(key, None)
            new.pop(key, None)
        return old, new

    def errors(self) -> list[str]:
        """Errors of shards whose previous content stays in use."""
        return [source.error for source in self._sources if source.error]


def _stat_file(path: Path) -> FileStat:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _contains_entry(content: bytes, entry: bytes) -> bool:
    """Whether the sorted lines of a shard contain an entry, by binary search."""
    low, high = 0, len(content)
    while low < high:
        begin = max(low, content.rfind(b"\n", low, (low + high) // 2) + 1)
        found = content[begin : content.index(b" ", begin)]
        if found == entry:
            return True
        if found < entry:
            low = content.index(b"\n", begin) + 1
        else:
            high = begin
    return False


def _parse_shard(text: str, shape: ShardFileFormat) -> dict[str, str]:
    if len(text) > _MAX_SHARD_BYTES:
        raise RefusedError(f"it is larger than {_MAX_SHARD_BYTES} bytes")
    if text and not text.endswith("\n"):
        raise RefusedError("it does not end with a line feed")
    entries: dict[str, str] = {}
    last = ""
    for line_number, line in enumerate(text.split("\n")[:-1], start=1):
        found = shape.line.fullmatch(line)
        if not found:
            raise RefusedError(f"line {line_number} is not a valid line of {shape.file}")
        if found[1] <= last:
            raise RefusedError(f"line {line_number} of {shape.file} is not in order")
        last = found[1]
        entries[last] = found[2]
    return entries
