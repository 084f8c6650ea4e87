"""What HAProxy knows of the workers behind it.

Source: HAProxy's management guide, section 9.3, `show servers state`.
"""

from __future__ import annotations

from proofgate.front_door.runtime_api import RuntimeApi, UnreachableError
from proofgate.front_door.target import RefusedError

BACKEND = "workers"
_RUNNING = 2
# As the operator configures it. A server that was not checked yet is up with this health, and a passed check
# raises it. The result of the last check tells less: there is none while the next check is on its way.
_RISE = 2


async def states(api: RuntimeApi, *fields: str) -> dict[str, tuple[int, ...]]:
    """The values of `fields`, numbers, by server. Raises RefusedError, UnreachableError."""
    answer = await api.ask(f"show servers state {BACKEND}")
    try:
        _, head, *lines = answer.splitlines()
        names = head.removeprefix("# ").split()
        name, *columns = [names.index(field) for field in ("srv_name", *fields)]
        rows = [line.split() for line in lines if line.strip()]
        return {row[name]: tuple(int(row[column]) for column in columns) for row in rows}
    except (ValueError, IndexError):
        raise RefusedError("HAProxy does not tell the state of its servers") from None


class Discovery:
    """Whether HAProxy has found its workers since it was started.

    Until then it would turn clients away whom another one could serve. Afterwards it is given connections
    even while no worker is up: it answers them, and says when to come back.
    """

    def __init__(self, api: RuntimeApi) -> None:
        self._api = api
        self._found_in: tuple[object] | None = None

    async def missing(self) -> str | None:
        """Why HAProxy cannot be given connections; None when it can."""
        life = (self._api.life(),)
        if life == self._found_in:
            return None
        lack = await missing(self._api)
        if lack is None:
            self._found_in = life
        return lack


async def missing(api: RuntimeApi) -> str | None:
    """Why HAProxy has not found its workers; None when it has.

    A server counts as up from the moment that its address is known; whether it answers, HAProxy learns
    from its first check.
    """
    try:
        found = await states(api, "srv_op_state", "srv_check_health")
    except (RefusedError, UnreachableError) as error:
        return str(error)
    up = {name: health for name, (state, health) in found.items() if state == _RUNNING}
    unproved = sorted(name for name, health in up.items() if health <= _RISE)
    if unproved:
        return f"not checked: {', '.join(unproved)}"
    return None if up else "no worker is up"
