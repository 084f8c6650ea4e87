"""What HAProxy knows of the workers behind it.

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
# As the operator configures it. A server that was not checked yet is up with this health, and a passed check
# raises it. The result of the last check tells less: there is none while the next check is on its way.
RISE_HEALTH = 2
NO_WORKER_UP = "no worker is up"
_STATE_UNAVAILABLE = "HAProxy does not report the state of its servers"
# Longer than an address takes to arrive, and a worker to pass its first checks.
DISCOVERY_SECONDS = 10.0
# Of `srv_admin_state`: in maintenance by command, and because the configuration begins with it (HAProxy,
# include/haproxy/server-t.h, `enum srv_admin`).
FORCED_MAINTENANCE = 0x01
CONFIGURED_MAINTENANCE = 0x04
# By command, as another server is, or because its name does not resolve.
_MAINTENANCE = FORCED_MAINTENANCE | 0x02 | 0x20
# Of `srv_check_status`: no check has begun yet (include/haproxy/check-t.h, `HCHK_STATUS_INI`).
NEVER_CHECKED = 1


@dataclass(frozen=True)
class Server:
    """A worker as HAProxy sees it.

    `address` is None in maintenance: HAProxy sends it nothing. `up`: it has passed its checks at this
    address. `seconds`: since it last came up, went down, or into maintenance. `row` has HAProxy's own fields.
    """

    address: str | None
    host: str
    up: bool
    checked: bool
    seconds_since_change: int
    row: Mapping[str, str] = field(compare=False, repr=False)

    @property
    def running(self) -> bool:
        """Whether HAProxy sends it connections, or would without maintenance."""
        return int(self.row["srv_op_state"]) == OP_STATE_RUNNING

    @property
    def state(self) -> str:
        """`up`, `down` or `maintenance`."""
        return "maintenance" if self.address is None else "up" if self.up else "down"


async def fetch_workers(api: RuntimeApi) -> dict[str, Server]:
    """Every server of the workers. Raises RefusedError, UnreachableError."""
    return parse_servers(await _fetch_server_states(api))


def parse_servers(text: str) -> dict[str, Server]:
    """Every server of an answer to `show servers state`. Raises RefusedError."""
    try:
        return {row["srv_name"]: _server(row) for row in _rows(text)}
    except (ValueError, KeyError):
        raise RefusedError(_STATE_UNAVAILABLE) from None


async def fetch_server_fields(api: RuntimeApi, *fields: str) -> dict[str, tuple[int, ...]]:
    """The values of `fields`, numbers, by server. Raises RefusedError, UnreachableError."""
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
    """Whether HAProxy knows its workers since it was started.

    Until it had the time to find them, it would turn clients away whom another one could serve. Then it is
    given connections even while no worker is up: it answers them, and says when to come back. `clock` is
    monotonic seconds.
    """

    def __init__(self, api: RuntimeApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._clock = clock
        self._found_in: tuple[object] | None = None
        self._alone: tuple[tuple[object], float] | None = None

    async def not_ready_reason(self) -> str | None:
        """Why HAProxy cannot be given connections; None when it can."""
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
        """Whether HAProxy had, in this life, the time to find a worker that is there."""
        now = self._clock()
        if self._alone is None or self._alone[0] != life:
            self._alone = (life, now)
        return now - self._alone[1] >= DISCOVERY_SECONDS


async def not_ready_reason(api: RuntimeApi) -> str | None:
    """Why HAProxy has not found its workers; None when it has.

    A server counts as up from the moment that its address is known; whether it answers, HAProxy learns
    from its first check.
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
