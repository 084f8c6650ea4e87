"""A ledger whose folders are served by separate workers, combined into one tree as on a shared volume.

Each pass starts with parallel requests to all workers for their listings. A worker that does not answer gets
no more requests in that pass, and a delay before the next request. The other workers are read meanwhile.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from proofgate.auditor.worker_files import BLOCK_BYTES, PASS_BUDGET_SECONDS, WorkerError, WorkerFiles
from proofgate.key_statements import STATEMENTS

log = logging.getLogger("proofgate.auditor")

#: Root path of the served ledger for the core; not a path of a file system.
ROOT = "ledger"
#: Seconds after which an unreachable worker becomes a finding. A replaced worker returns sooner.
FAILURE_GRACE_SECONDS = 60.0
#: Maximum seconds to wait for the listings of all workers, which are requested in parallel.
_LISTING_TIMEOUT_SECONDS = 8.0
_MAX_CONCURRENT_LISTINGS = 64
_MAX_BACKOFF_SECONDS = 30.0
_MAX_SHARDS = 1024
#: Maximum number of logs in all shards together. The auditor keeps three kilobytes for each log.
_MAX_LOGS = 32_768
_MAX_STATEMENTS = 256
#: Bytes that are read of a statement: one more than its maximum size, to detect a longer statement.
_STATEMENT_BYTES = 8193
#: Bytes that are read when a segment is opened: its header, which never changes. A small file is read
#: completely when it is opened.
_SEGMENT_HEADER_BYTES = 128
_SMALL_FILE_BYTES = 1 << 16
_SEGMENT_SUFFIXES = (".seg", ".next")

_Result = TypeVar("_Result")


@dataclass
class _Contents:
    """The contents that a worker reports."""

    shards: dict[str, frozenset[str]] = field(default_factory=dict)
    statements: dict[str, bytes] = field(default_factory=dict)


class _Worker:
    """One worker, and the state of reading from it."""

    def __init__(self, shard: str, files: WorkerFiles, url: str) -> None:
        self.shard, self.files, self.url = shard, files, url
        self.held: _Contents | None = None
        self.failing_since: float | None = None
        self.why = ""
        self.listed = True
        self._failures = 0
        self._not_before = 0.0
        #: A pending request for the listing, during which the connection has no other user. None if none is
        #: pending.
        self.asked: Future[_Contents] | None = None

    def is_due(self) -> bool:
        return self.asked is None and time.monotonic() >= self._not_before

    def record_failure(self, why: str) -> None:
        now = time.monotonic()
        self.held, self.why = None, why
        self.failing_since = now if self.failing_since is None else self.failing_since
        self._not_before = now + min(_MAX_BACKOFF_SECONDS, 2.0**self._failures)
        self._failures = min(self._failures + 1, 6)

    def record_success(self) -> None:
        if self.failing_since is not None:
            log.info("the worker of shard %s can be read again", self.shard)
        self.failing_since, self._failures = None, 0

    def list_contents(self) -> _Contents:
        """Requests the worker's contents, in a thread of the pool. Raises OSError."""
        self.files.start_round()
        held = _Contents()
        names = self.files.list_folder("")
        shards = [name for name in names if name.isascii() and name.isdigit()]
        if len(shards) > _MAX_SHARDS:
            raise WorkerError(f"it reports too many shards: {len(shards)}")
        for shard in shards:
            # A shard that was removed since the listing is missing from the next one.
            with suppress(FileNotFoundError):
                held.shards[shard] = frozenset(self.files.list_folder(shard))
            if (logs := sum(map(len, held.shards.values()))) > _MAX_LOGS:
                raise WorkerError(f"it reports too many logs: {logs}, at most {_MAX_LOGS} are read")
        if STATEMENTS in names:
            statements = self.files.list_folder(STATEMENTS)
            if len(statements) > _MAX_STATEMENTS:
                raise WorkerError(f"it reports too many statements of key succession: {len(statements)}")
            for name in statements:
                with suppress(FileNotFoundError):
                    path = f"{STATEMENTS}/{name}"
                    held.statements[name] = self.files.read(path, 0, _STATEMENT_BYTES)[1]
        return held


class ServedLedger:
    """The combined ledger, with the functions `list`, `open` and `read` that `_core.Auditor` calls.

    `workers` returns the URL of each shard's worker. It is called at the start of each pass; if it fails, the
    previous list stays in use. A worker that leaves the list is read as long as it answers, so that the seal
    of a worker that is scaled down is read. `patience` is how many seconds a worker may be unreachable, and
    `look_seconds` how many seconds of a pass one worker may use.
    """

    def __init__(
        self,
        workers: Callable[[], Mapping[str, str]],
        token_file: Path | None,
        patience: float = FAILURE_GRACE_SECONDS,
        look_seconds: float = PASS_BUDGET_SECONDS,
    ) -> None:
        self._list, self._token_file = workers, token_file
        self._patience, self._look_seconds = patience, look_seconds
        self._workers: dict[str, _Worker] = {}
        self._pool = ThreadPoolExecutor(_MAX_CONCURRENT_LISTINGS, "worker-folder")
        self._statements: dict[str, bytes] = {}
        self.bytes_read = 0
        self.reload_worker_list()

    def reload_worker_list(self) -> None:
        """Reloads the list of workers. Raises ValueError and OSError; the previous list then stays in use."""
        wanted = dict(self._list())
        made = {
            shard: _Worker(shard, WorkerFiles(url, self._token_file, self._look_seconds), url)
            for shard, url in wanted.items()
            if shard not in self._workers or self._workers[shard].url != url
        }
        self._workers |= made
        for shard, worker in self._workers.items():
            worker.listed = shard in wanted

    def start_pass(self) -> str:
        """Starts a pass. Returns the state of each worker as JSON for the core's `set_worker_states`."""
        try:
            self.reload_worker_list()
        except (ValueError, OSError) as error:
            log.error("cannot read the list of workers, the previous list stays in use: %s", error)  # noqa: TRY400
        for worker in self._workers.values():
            if worker.held is not None:
                worker.record_success()
            worker.held = None
        self._list_workers()
        # A worker that has left the list and does not answer is removed: its shard has no worker.
        for shard in [of for of, worker in self._workers.items() if not worker.listed and not worker.held]:
            self._workers.pop(shard).files.close()
        reach = {
            shard: {"answers": worker.held is not None, "failing": self._failure_message(worker)}
            for shard, worker in self._workers.items()
        }
        for worker in self._responding_workers():
            # A shard without a worker of its own is in the wrong folder. It is read too, so that it is
            # reported.
            for shard in worker.held.shards if worker.held else ():
                reach.setdefault(shard, {"answers": True, "failing": None})
        return json.dumps(reach)

    def _failure_message(self, worker: _Worker) -> str | None:
        since = worker.failing_since
        if since is None or time.monotonic() - since < self._patience:
            return None
        return f"its worker could not be read for {time.monotonic() - since:.0f} s: {worker.why}"

    def _list_workers(self) -> None:
        due = [worker for worker in self._workers.values() if worker.is_due()]
        for worker in due:
            worker.asked = self._pool.submit(worker.list_contents)
        wait_for([worker.asked for worker in due if worker.asked], _LISTING_TIMEOUT_SECONDS)
        for worker in self._workers.values():
            if worker.asked is None:
                continue
            if not worker.asked.done():
                if worker in due:
                    worker.record_failure("it did not list its contents in time")
                continue
            done, worker.asked = worker.asked, None
            try:
                held = done.result()
            except Exception as error:
                # No error of one worker may prevent the other workers from being read.
                worker.record_failure(str(error) if isinstance(error, OSError) else type(error).__name__)
            else:
                # A response to a request of an earlier pass is late and does not count for this pass.
                worker.held = held if worker in due else None
        self._statements = self._merge_statements()

    def reachable_by_shard(self) -> dict[str, bool]:
        """Whether the worker of each shard can be read."""
        return {shard: worker.failing_since is None for shard, worker in list(self._workers.items())}

    def urls(self) -> dict[str, str]:
        """The URL of each shard's worker."""
        return {shard: worker.url for shard, worker in list(self._workers.items())}

    def statements(self) -> dict[str, bytes]:
        """The statements of key succession that workers hold, by file name. If workers hold different
        statements under one name, each further statement gets a name of its own."""
        return self._statements

    def _merge_statements(self) -> dict[str, bytes]:
        merged: dict[str, bytes] = {}
        for worker in self._responding_workers():
            for name, content in worker.held.statements.items() if worker.held else ():
                if merged.setdefault(name, content) != content:
                    merged[f"{worker.shard}-{name}"] = content
        return merged

    def _responding_workers(self) -> list[_Worker]:
        order = sorted(self._workers.values(), key=lambda worker: int(worker.shard))
        return [worker for worker in order if worker.held is not None]

    def _locate(self, path: str) -> tuple[_Worker, str]:
        """Returns the worker that serves a path in a log, and the path at that worker."""
        _, shard, incarnation, *_ = path.split("/")
        own = self._workers.get(shard)
        for worker in ([own] if own else []) + self._responding_workers():
            if worker.held and incarnation in worker.held.shards.get(shard, ()):
                return worker, path.split("/", 1)[1]
        if own is not None and own.held is None:
            raise WorkerError(own.why or "its worker does not answer")
        raise FileNotFoundError("it does not exist")

    def list(self, path: str) -> list[str]:
        """Returns the names in a folder. Raises OSError."""
        _, *below = path.split("/")
        held = [worker.held for worker in self._responding_workers() if worker.held]
        if not below:
            names = {shard for of in held for shard in of.shards}
            return sorted(names | ({STATEMENTS} if self.statements() else set()))
        if below == [STATEMENTS]:
            return sorted(self.statements())
        if len(below) == 1:
            logs = [of.shards[below[0]] for of in held if below[0] in of.shards]
            if not logs:
                raise FileNotFoundError("it does not exist")
            return sorted(frozenset().union(*logs))
        worker, there = self._locate(path)
        return self._request(worker, lambda: worker.files.list_folder(there))

    def open(self, path: str) -> tuple[int, bytes]:
        """Opens a file for the core, which reads the ledger through this class: returns the length of the file,
        and its first bytes if the same request read them (else empty). Raises OSError."""
        _, *below = path.split("/")
        if below[0] == STATEMENTS:
            content = self.statements().get(below[-1])
            if content is None:
                raise FileNotFoundError("it does not exist")
            return len(content), content
        worker, there = self._locate(path)
        most = _SEGMENT_HEADER_BYTES if path.endswith(_SEGMENT_SUFFIXES) else _SMALL_FILE_BYTES
        length, beginning = self._request(worker, lambda: worker.files.read(there, 0, most))
        self.bytes_read += len(beginning)
        # Zero bytes may be overwritten a moment later, so they are not returned.
        return length, beginning if any(beginning) else b""

    def read(self, path: str, offset: int, most: int) -> bytes:
        """Returns at most `most` bytes of a file from `offset`; empty at its end. Raises OSError."""
        worker, there = self._locate(path)
        most = min(most, BLOCK_BYTES)
        content = self._request(worker, lambda: worker.files.read(there, offset, most))[1]
        self.bytes_read += len(content)
        return content

    def _request(self, worker: _Worker, ask: Callable[[], _Result]) -> _Result:
        try:
            return ask()
        except WorkerError as error:
            worker.record_failure(str(error))
            raise

    def close(self) -> None:
        """Closes all connections."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        for worker in self._workers.values():
            worker.files.close()


def read_worker_list(path: Path) -> dict[str, str]:
    """Reads the URLs of workers, by shard, from a JSON file. Raises ValueError and OSError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise ValueError(f"{path} is not JSON") from None
    if not isinstance(document, dict):
        raise ValueError(f"{path} is not a JSON object that maps shards to URLs")  # noqa: TRY004 - it is a file's content
    return check_worker_urls(document)


def check_worker_urls(workers: Mapping[str, object]) -> dict[str, str]:
    """Checks and returns the URLs of workers by shard. Raises ValueError for an invalid shard or URL."""
    found: dict[str, str] = {}
    for shard, url in workers.items():
        if not (shard.isascii() and shard.isdigit() and len(shard) <= 9 and shard == str(int(shard))):
            raise ValueError(f"{shard!r} is not a shard number")
        if not isinstance(url, str):
            raise ValueError(f"the worker of shard {shard} has no URL")  # noqa: TRY004 - as above
        WorkerFiles(url, None)
        found[shard] = url
    return found
