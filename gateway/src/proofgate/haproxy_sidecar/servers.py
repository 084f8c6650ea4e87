"""HAProxy's state of the workers behind it.

Source: HAProxy's management guide, section 9.3, `show servers state`.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from proofgate.haproxy_sidecar.runtime_api import RuntimeApi, UnreachableError
from proofgate.haproxy_sidecar.target import RefusedError

BACKEND = "workers"
#: Value of `srv_op_state` for a server that is up.
OP_STATE_RUNNING = 2
# The `rise` value that the operator configures. A server that was not checked yet is up with this health, and
# a passed check raises it. The result of the last check is less useful, because it is missing while a check
# is running.
RISE_HEALTH = 2
NO_WORKER_UP = "no worker is up"
_STATE_UNAVAILABLE = "HAProxy does not report the state of its servers"
# Seconds that suffice for an address to arrive and for a worker to pass its first checks.
DISCOVERY_SECONDS = 10.0
# Bits of `srv_admin_state`: maintenance by command, and maintenance from the configuration (HAProxy,
# include/haproxy/server-t.h, `enum srv_admin`).
FORCED_MAINTENANCE = 0x01
CONFIGURED_MAINTENANCE = 0x04
# Maintenance by command, inherited from another server, or because the name does not resolve.
_MAINTENANCE = FORCED_MAINTENANCE | 0x02 | 0x20
# Value of `srv_check_status` before the first check (include/haproxy/check-t.h, `HCHK_STATUS_INI`).
NEVER_CHECKED = 1


@dataclass(frozen=True)
class Server:
    """A worker as HAProxy sees it.

    `address` has the value None in maintenance, in which HAProxy sends the worker nothing. `up`: the worker
    has passed its checks at this address. `seconds_since_change`: seconds since it last went up, down or into
    maintenance. `row` has HAProxy's own fields.
    """

    address: str | None
    host: str
    up: bool
    checked: bool
    seconds_since_change: int
    row: Mapping[str, str] = field(compare=False, repr=False)

    @property
    def running(self) -> bool:
        """Whether HAProxy sends the worker connections, or would do so without maintenance."""
        return int(self.row["srv_op_state"]) == OP_STATE_RUNNING

    @property
    def state(self) -> str:
        """`up`, `down` or `maintenance`."""
        return "maintenance" if self.address is None else "up" if self.up else "down"


async def fetch_workers(api: RuntimeApi) -> dict[str, Server]:
    """Returns all workers by server name. Raises RefusedError, UnreachableError."""
    return parse_servers(await _fetch_server_states(api))


def parse_servers(text: str) -> dict[str, Server]:
    """Parses the servers in a response to `show servers state`. Raises RefusedError."""
    try:
        return {row["srv_name"]: _server(row) for row in _rows(text)}
    except (ValueError, KeyError):
        raise RefusedError(_STATE_UNAVAILABLE) from None


async def fetch_server_fields(api: RuntimeApi, *fields: str) -> dict[str, tuple[int, ...]]:
    """Returns the values of the numeric `fields` by server. Raises RefusedError, UnreachableError."""
    found = await _fetch_server_states(api)
    try:
        return {row["srv_name"]: tuple(int(row[name]) for name in fields) for row in _rows(found)}
    except (ValueError, KeyError):
        raise RefusedError(_STATE_UNAVAILABLE) from None


async def _fetch_server_states(api: RuntimeApi) -> str:
    return await api.send_command(f"show servers state {BACKEND}")


def _rows(text: str) -> list[dict[str, str]]:
    _, head, *lines = text.splitlines()
    names = head.removeprefix("# ").split()
    return [dict(zip(names, line.split(), strict=True)) for line in lines if line.strip()]


def _server(row: dict[str, str]) -> Server:
    away = int(row["srv_admin_state"]) & _MAINTENANCE
    address = None if away else str(ipaddress.ip_address(row["srv_addr"]))
    running = int(row["srv_op_state"]) == OP_STATE_RUNNING and int(row["srv_check_health"]) > RISE_HEALTH
    return Server(
        address,
        row["srv_fqdn"],
        up=not away and running,
        checked=int(row["srv_check_status"]) != NEVER_CHECKED,
        seconds_since_change=int(row["srv_time_since_last_change"]),
        row=row,
    )


class WorkerDiscovery:
    """Detects whether HAProxy has found its workers since its start.

    Before that, HAProxy would reject clients that another HAProxy could serve, so it is not ready. After
    enough time it is ready even if no worker is up: it then answers requests with the time for a retry.
    `clock` returns monotonic seconds.
    """

    def __init__(self, api: RuntimeApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._found_in: tuple[object] | None = None
        self._alone: tuple[tuple[object], float] | None = None

    async def not_ready_reason(self) -> str | None:
        """Why HAProxy is not ready for connections; None if it is."""
        life = (self._api.instance_id(),)
        if life == self._found_in:
            return None
        lack = await not_ready_reason(self._api)
        if lack == NO_WORKER_UP and self._discovery_time_elapsed(life):
            lack = None
        if lack is None:
            self._found_in = life
        return lack

    def _discovery_time_elapsed(self, life: tuple[object]) -> bool:
        """Whether the current HAProxy process has had enough time to find an existing worker."""
        now = self._clock()
        if self._alone is None or self._alone[0] != life:
            self._alone = (life, now)
        return now - self._alone[1] >= DISCOVERY_SECONDS


async def not_ready_reason(api: RuntimeApi) -> str | None:
    """Why HAProxy has not found its workers; None if it has.

    A server counts as up when its address is known. HAProxy learns from the first check whether it answers.
    """
    try:
        found = await fetch_server_fields(api, "srv_op_state", "srv_check_health")
    except (RefusedError, UnreachableError) as error:
        return str(error)
    up = {name: health for name, (state, health) in found.items() if state == OP_STATE_RUNNING}
    unproved = sorted(name for name, health in up.items() if health <= RISE_HEALTH)
    if unproved:
        return f"HAProxy has not checked these workers yet: {', '.join(unproved)}"
    return None if up else NO_WORKER_UP
