"""Where the workers are, and what HAProxy knows of that.

The operator writes the addresses of workers' pods, of those that are there and do not end: a name server
may tell of a pod that is gone for as long as answers are cached. Names are asked only where the operator
tells nothing, or where a worker has not been up for so long that a name server knows better.

An address that HAProxy gets while it runs counts as down until the worker there has passed its checks. In
maintenance, which is where a worker without an address is, HAProxy sends nothing and checks nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from proofgate.haproxy_sidecar import servers
from proofgate.haproxy_sidecar.name_resolver import NameResolver
from proofgate.haproxy_sidecar.runtime_api import RuntimeApi, UnreachableError
from proofgate.haproxy_sidecar.server_state import ServerStateFile
from proofgate.haproxy_sidecar.servers import Server
from proofgate.haproxy_sidecar.target import RefusedError

log = logging.getLogger("proofgate.haproxy-sidecar")

#: Placeholder for a worker that is expected but has no address.
NO_ADDRESS = "-"
# A worker that was not up for so long, while the operator told nothing new of it, is looked for by its name:
# the operator may be away. Answers are cached for 30 s by a name server and for 30 s by one on the node, so
# what is told then is newer than what the operator wrote.
DNS_FALLBACK_SECONDS = 90.0
_LINE = re.compile(r"([A-Za-z0-9._-]{1,63})[ \t]+(-|[0-9A-Fa-f.:]{2,45})")
# A new address is in force at once in HAProxy 2.6, and after a moment since 3.0.
_APPLY_TIMEOUT_SECONDS = 2.0
_APPLY_POLL_SECONDS = 0.05
# A line of commands has to fit into HAProxy's buffer; those for one server have up to 350 bytes.
_MAX_SERVERS_PER_COMMAND = 16


@dataclass(frozen=True)
class DesiredAddresses:
    """What the operator says: an address, or None, for each worker that is to be. None at all without it."""

    addresses: Mapping[str, str | None] | None


@dataclass
class _AddressAttempt:
    """What came of an address so far: since when the worker is not up there, and where its name leads."""

    configured_address: str | None
    down_since: float | None = None
    resolved_address: str | None = None

    @property
    def address(self) -> str | None:
        return self.resolved_address or self.configured_address


class WorkerAddresses:
    """The file at `path`, and the addresses of HAProxy's servers.

    `state`: the path of the file from which a HAProxy that starts knows them, if there is one. `clock` is
    monotonic seconds.
    """

    name = "workers"
    check_seconds = 1.0

    def __init__(
        self,
        path: Path,
        api: RuntimeApi,
        names: NameResolver | None = None,
        clock: Callable[[], float] = time.monotonic,
        state: Path | None = None,
    ) -> None:
        self._path = path
        self._api = api
        self._names = names or NameResolver()
        self._clock = clock
        self._state = ServerStateFile(state)
        self._trials: dict[str, _AddressAttempt] = {}

    def read(self) -> DesiredAddresses:
        try:
            return DesiredAddresses(parse_addresses(self._path.read_text(encoding="ascii")))
        except FileNotFoundError:
            return DesiredAddresses(None)
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not ASCII"
            raise RefusedError(f"{self._path} cannot be read: {reason}") from None

    async def reconcile(self, content: DesiredAddresses) -> str | None:
        try:
            found = await servers.fetch_workers(self._api)
        except UnreachableError:
            self._remove_moved_servers(content)
            raise
        await self._update_attempts(found, content)
        wanted = {name: trial.address for name, trial in self._trials.items()}
        changed = _changed_servers(found, wanted)
        if not changed:
            self._state.save(found)
            return None
        # Before HAProxy is told: it may end at any time, and start again.
        self._state.remove_moved_servers(wanted)
        # Before HAProxy has checked anybody, it holds for up whom it knows: better than nobody at all.
        proved = any(server.checked for server in found.values())
        answers = [
            await self._api.send_command("; ".join(batch))
            for batch in _commands(found, wanted, changed, proved=proved)
        ]
        self._state.save(await self._wait_until_applied(wanted, "; ".join(" ".join(answers).split("\n"))))
        return " ".join(f"{name}={wanted.get(name) or NO_ADDRESS}" for name in changed)

    def errors(self) -> list[str]:
        return [self._state.trouble] if self._state.trouble else []

    def gauges(self) -> dict[str, float]:
        found = self._trials.values()
        return {
            "entries": sum(trial.address is not None for trial in found),
            "by_name": sum(trial.resolved_address is not None for trial in found),
        }

    def _remove_moved_servers(self, content: DesiredAddresses) -> None:
        """Let a HAProxy that is not there now not start with an address that its worker has left."""
        if content.addresses is None:
            return
        wanted = dict(content.addresses)
        for name, trial in self._trials.items():
            if name in wanted and trial.configured_address == wanted[name]:
                wanted[name] = trial.address
        self._state.remove_moved_servers(wanted)

    async def _update_attempts(self, found: Mapping[str, Server], content: DesiredAddresses) -> None:
        """Note where each worker is to be."""
        told = content.addresses
        names = found.keys() if told is None else found.keys() & told.keys()
        for name in self._trials.keys() - names:
            del self._trials[name]
        asked = []
        for name in sorted(names):
            address = None if told is None else told[name]
            trial = self._trials.get(name)
            if trial is None or trial.configured_address != address:
                trial = self._trials[name] = _AddressAttempt(address)
            if self._should_resolve(trial, found[name], by_name=told is None):
                asked.append(name)
        others = frozenset(filter(None, told.values())) if told else frozenset()
        await asyncio.gather(*(self._resolve(name, found[name].host, others) for name in asked))

    def _should_resolve(self, trial: _AddressAttempt, server: Server, *, by_name: bool) -> bool:
        now = self._clock()
        if server.up and server.address == trial.address:
            trial.down_since = None
            return False
        if trial.down_since is None:
            trial.down_since = now
        return by_name or now - trial.down_since >= DNS_FALLBACK_SECONDS

    async def _resolve(self, name: str, host: str, others: frozenset[str]) -> None:
        answer = await self._names.addresses(host)
        trial = self._trials[name]
        if answer is None:
            return
        # Where the operator says that another worker is, this one is not any more.
        usable = [
            address for address in answer if address == trial.configured_address or address not in others
        ]
        named = trial.address if trial.address in usable else next(iter(usable), None)
        if named != trial.address and named is not None:
            log.warning("%s: trying the address %s, which its name resolves to", name, named)
        trial.resolved_address = named if named != trial.configured_address else None

    async def _wait_until_applied(self, wanted: Mapping[str, str | None], answer: str) -> dict[str, Server]:
        """Return the servers once HAProxy has the addresses. Raises RefusedError when it does not take them
        on."""
        deadline = time.monotonic() + _APPLY_TIMEOUT_SECONDS
        while missing := _changed_servers(found := await servers.fetch_workers(self._api), wanted):
            if time.monotonic() >= deadline:
                raise RefusedError(
                    f"HAProxy did not apply the new address of {', '.join(missing)}: {answer[:200]}"
                )
            await asyncio.sleep(_APPLY_POLL_SECONDS)
        return found


def parse_addresses(content: str) -> dict[str, str | None]:
    """The workers of a file, each with its address. Raises RefusedError with the number of a bad line."""
    found: dict[str, str | None] = {}
    for number, line in enumerate(content.split("\n"), start=1):
        text = line.strip(" \t\r")
        if not text or text.startswith("#"):
            continue
        entry = _LINE.fullmatch(text)
        if not entry or entry[1] in found:
            raise RefusedError(
                f"line {number} is not a worker and its address, or the worker is listed twice"
            )
        try:
            found[entry[1]] = None if entry[2] == NO_ADDRESS else str(ipaddress.ip_address(entry[2]))
        except ValueError:
            raise RefusedError(f"line {number} has no address") from None
    return found


def _changed_servers(found: Mapping[str, Server], wanted: Mapping[str, str | None]) -> list[str]:
    return [name for name, server in found.items() if server.address != wanted.get(name)]


def _commands(
    found: Mapping[str, Server],
    wanted: Mapping[str, str | None],
    changed: Iterable[str],
    *,
    proved: bool,
) -> Iterator[list[str]]:
    """Yield lines of commands. With `proved`, a worker is down until it has passed its checks."""
    batch: list[str] = []
    for count, name in enumerate(changed, start=1):
        server, address = f"set server {servers.BACKEND}/{name}", wanted.get(name)
        if found[name].address is not None:
            batch.append(f"{server} state maint")
        if address is not None:
            batch += [f"{server} addr {address}", f"{server} state ready"]
            if proved:
                batch.append(f"{server} health down")
        if count % _MAX_SERVERS_PER_COMMAND == 0:
            yield batch
            batch = []
    if batch:
        yield batch
