"""A steady load on a gateway during a change, counted by the clients and by the upstream and ledger."""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from e2e import evidence
from e2e.kubernetes import PATIENCE, REPOSITORY, Namespace, environment, ledger_directory
from e2e.lab_network import exchange, inside
from e2e.programs import Program, start_ready
from e2e.steady import Attempt


@dataclass
class Report:
    """The result of a load: every attempt, and the counts of the upstream and the ledger."""

    attempts: list[Attempt] = field(default_factory=list)
    #: The number of times that the upstream saw each request, by request id.
    seen: dict[str, int] = field(default_factory=dict)
    #: The gateway's ids of the exchanges whose completion is in the ledger.
    completed: set[str] = field(default_factory=set)

    @property
    def whole(self) -> list[Attempt]:
        """The attempts with complete answers."""
        return [attempt for attempt in self.attempts if attempt.error is None]

    @property
    def failed(self) -> list[Attempt]:
        """The failed attempts without a stream."""
        return [attempt for attempt in self.attempts if attempt.error is not None and not attempt.stream]

    @property
    def broken(self) -> list[Attempt]:
        """The streams that failed or broke off."""
        return [attempt for attempt in self.attempts if attempt.error is not None and attempt.stream]

    @property
    def lost(self) -> list[str]:
        """The completely answered requests without a completion in the ledger."""
        return [str(attempt.request_id) for attempt in self.whole if attempt.request_id not in self.completed]

    @property
    def repeated(self) -> list[str]:
        """The requests that the upstream saw more than once."""
        return [identity for identity, count in self.seen.items() if count > 1]

    def longest_wait(self, keys: Sequence[str]) -> float:
        """The longest time between two complete answers to one client in seconds, including the client's pause.

        Only plain requests count, because the end of a stream does not show when it was served.
        """
        longest = 0.0
        for key in keys:
            ends = sorted(one.ended for one in self.whole if one.key == key and not one.stream)
            longest = max([longest, *(after - before for before, after in pairwise(ends))])
        return longest


class SteadyLoad:
    """A running load."""

    def __init__(self, namespace: Namespace, gateway: str, folder: Path, name: str) -> None:
        self.name = name
        self.report = Report()
        self._namespace = namespace
        self._gateway = gateway
        self._folder = folder
        self._program: Program | None = None

    def start(self, arguments: Sequence[str], first: int) -> None:
        """Starts the program, and restarts it once if it does not send `first` requests."""
        command = (sys.executable, "-m", "e2e.cluster", "inside", "--", sys.executable, "-m", "e2e.steady")

        def start() -> Program:
            (self._folder / "report.count").unlink(missing_ok=True)
            return Program.start("load", self._folder, arguments, command, env=environment(), cwd=REPOSITORY)

        self._program, _ = start_ready(start, lambda program: self._wait(program, first))

    def attempts(self) -> int:
        """The number of ended requests."""
        try:
            return int((self._folder / "report.count").read_text())
        except FileNotFoundError:
            return 0

    def goes_on(self, more: int) -> None:
        """Waits until `more` further requests have ended."""
        assert self._program is not None
        self._wait(self._program, self.attempts() + more)

    def _wait(self, program: Program, goal: int) -> bool:
        return program.wait_until(lambda: self.attempts() >= goal, f"{goal} requests of the load have ended", PATIENCE)

    def end(self) -> None:
        """Waits for the end of the program, which was asked to end."""
        assert self._program is not None
        code = self._program.process.wait(PATIENCE)
        if code:
            raise RuntimeError(self._program.report)

    def read(self) -> None:
        """Reads the results of the clients, the upstream and the ledger after the end of the load."""
        document = json.loads((self._folder / "report.json").read_text())
        self.report.attempts = [Attempt(**one) for one in document]
        address = self._namespace.service_address("mock-upstream")
        stats = json.loads(inside(exchange, "GET", f"http://{address}:9000/mock/stats").text)
        self.report.seen = {
            identity: count for identity, count in stats["ids"].items() if identity.startswith(f"{self.name}-")
        }
        records = evidence.records(ledger_directory(self._namespace, self._gateway))
        self.report.completed = {record["id"] for record in records if record["kind"] == "completion"}


@contextmanager
def steady_load(
    namespace: Namespace,
    gateway: str,
    folder: Path,
    keys: Sequence[str],
    *,
    clients: int = 12,
    ca: Path | None = None,
    server_name: str | None = None,
    fresh: bool = False,
    streams: bool = True,
    pause: float = 0.2,
    seconds: float = 3600,
) -> Iterator[SteadyLoad]:
    """Runs a load until the block ends; then its report can be read.

    `ca` is the authority of the gateway's certificate, which must contain `server_name`; with them, the load uses TLS.
    `fresh` opens a new connection for each request, because only new connections go to a new worker. `streams` makes
    every second client stream. `pause` is the time in seconds between two requests of a client that does not stream.
    """
    name = f"steady-{uuid.uuid4().hex[:8]}"
    key_file, until, report = folder / "keys", folder / "until", folder / "report.json"
    key_file.write_text("\n".join(keys))
    until.unlink(missing_ok=True)
    address = namespace.service_address(gateway)
    url = f"https://{address}/v1" if ca else f"http://{address}/v1"
    arguments = ["--url", url, "--name", name, "--clients", str(clients), "--seconds", str(seconds)]
    arguments += ["--keys", str(key_file), "--until", str(until), "--report", str(report)]
    arguments += ["--pause", str(pause), *(["--fresh"] if fresh else []), *([] if streams else ["--no-streams"])]
    if ca and server_name:
        arguments += ["--ca", str(ca), "--server-name", server_name]
    load = SteadyLoad(namespace, gateway, folder, name)
    load.start(arguments, 3 * clients)
    try:
        yield load
        load.goes_on(3 * clients)
    finally:
        until.touch()
        load.end()
    load.read()


def now() -> float:
    """The current Unix time in seconds, as in the load's report."""
    return time.time()
