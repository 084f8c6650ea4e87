"""The addresses of workers, and the addresses that HAProxy uses.

The operator writes the addresses of workers' pods that exist and are not terminating. A name server may
return the address of a removed pod while responses are cached. Names are resolved only if the operator writes
no addresses, or if a worker has been down for so long that a name server's response is newer.

A server whose address is set at run time counts as down until its worker has passed its checks. A worker
without an address is in maintenance: HAProxy sends it no requests and no checks.
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
# Seconds after which the name of a worker that is not up is resolved, if the operator has not written a new
# address: the operator may be unavailable. A name server caches a response for 30 s, and one on the node for
# another 30 s, so the response is then newer than the operator's address.
DNS_FALLBACK_SECONDS = 90.0
_LINE = re.compile(r"([A-Za-z0-9._-]{1,63})[ \t]+(-|[0-9A-Fa-f.:]{2,45})")
# HAProxy 2.6 applies a new address immediately, HAProxy 3.0 and later with a short delay.
_APPLY_TIMEOUT_SECONDS = 2.0
_APPLY_POLL_SECONDS = 0.05
# A line of commands must fit into HAProxy's buffer. The commands for one server have up to 350 bytes.
_MAX_SERVERS_PER_COMMAND = 16


@dataclass(frozen=True)
class DesiredAddresses:
    """The addresses that the operator writes, by expected worker; None for a worker without an address.
    Without the operator's file, `addresses` has the value None."""

    addresses: Mapping[str, str | None] | None


@dataclass
class _AddressAttempt:
    """The state of a configured address: since when the worker is down at it, and the address to which the
    worker's name resolves."""

    configured_address: str | None
    down_since: float | None = None
    resolved_address: str | None = None

    @property
    def address(self) -> str | None:
        return self.resolved_address or self.configured_address


class WorkerAddresses:
    """Sets the addresses of HAProxy's servers to those in the file at `path` (a `SyncTarget`).

    `state` is the path of the file from which HAProxy loads the addresses at its start, if there is one.
    `clock` returns monotonic seconds.
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
            self._clear_outdated_addresses(content)
            raise
        await self._update_attempts(found, content)
        wanted = {name: trial.address for name, trial in self._trials.items()}
        changed = _changed_servers(found, wanted)
        if not changed:
            self._state.save(found)
            return None
        # This comes before the commands to HAProxy, which may end and restart at any time.
        self._state.clear_changed_addresses(wanted)
        # Before its first checks, HAProxy considers all servers with known addresses up, which is better than
        # no server.
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

    def _clear_outdated_addresses(self, content: DesiredAddresses) -> None:
        """Ensure that a HAProxy that is not running now does not start with an outdated address of a
        worker."""
        if content.addresses is None:
            return
        wanted = dict(content.addresses)
        for name, trial in self._trials.items():
            if name in wanted and trial.configured_address == wanted[name]:
                wanted[name] = trial.address
        self._state.clear_changed_addresses(wanted)

    async def _update_attempts(self, found: Mapping[str, Server], content: DesiredAddresses) -> None:
        """Update the state of each worker's configured address."""
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
        # An address that the operator now lists for another worker is no longer this worker's.
        usable = [
            address for address in answer if address == trial.configured_address or address not in others
        ]
        named = trial.address if trial.address in usable else next(iter(usable), None)
        if named != trial.address and named is not None:
            log.warning("%s: trying the address %s, which its name resolves to", name, named)
        trial.resolved_address = named if named != trial.configured_address else None

    async def _wait_until_applied(self, wanted: Mapping[str, str | None], answer: str) -> dict[str, Server]:
        """Return the servers after HAProxy has applied the addresses. Raises RefusedError if it does not
        apply them."""
        deadline = time.monotonic() + _APPLY_TIMEOUT_SECONDS
        while missing := _changed_servers(found := await servers.fetch_workers(self._api), wanted):
            if time.monotonic() >= deadline:
                raise RefusedError(
                    f"HAProxy did not apply the new address of {', '.join(missing)}: {answer[:200]}"
                )
            await asyncio.sleep(_APPLY_POLL_SECONDS)
        return found


def parse_addresses(content: str) -> dict[str, str | None]:
    """Parse the workers in a file, each with its address. Raises RefusedError with the number of an invalid
    line."""
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
            raise RefusedError(f"line {number}: {entry[2]} is not an IP address") from None
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
    """Yield lines of commands. With `proved`, a server whose address changes is down until its worker has
    passed its checks."""
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
