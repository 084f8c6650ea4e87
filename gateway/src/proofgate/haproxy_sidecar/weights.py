"""The weights of workers on HAProxy's ring, and HAProxy's current weights."""

from __future__ import annotations

from collections.abc import Mapping

from proofgate.haproxy_sidecar import servers
from proofgate.haproxy_sidecar.entries_file import EntriesFile, parse_entries
from proofgate.haproxy_sidecar.target import RefusedError

_MAX_WEIGHT = 256


class WeightsFile(EntriesFile):
    """A file of servers and their weights. A server that is not in the file has its configured weight.

    HAProxy has no versions of weights, so differing weights are set one after the other in one command line.
    A server that this HAProxy does not have is skipped, because HAProxy gets its servers only at its start.
    """

    async def reconcile(self, content: str) -> str | None:
        named = _parse_weights(content)
        changes = _changed_weights(await self._servers(), named)
        if changes:
            commands = (
                f"set server {servers.BACKEND}/{name} weight {weight}" for name, weight in changes.items()
            )
            answer = await self._api.send_command("; ".join(commands))
            if answer:
                raise RefusedError(f"HAProxy refuses a weight: {answer.splitlines()[0][:200]}")
            if _changed_weights(await self._servers(), named):
                raise RefusedError("HAProxy did not apply the new weights")
        self._entries = len(named)
        told = " ".join(f"{name}={weight}" for name, weight in changes.items())
        return told or None

    async def _servers(self) -> dict[str, tuple[int, int]]:
        """Returns the current and the configured weight of every server."""
        found = await servers.fetch_server_fields(self._api, "srv_uweight", "srv_iweight")
        return {name: (weight, configured) for name, (weight, configured) in found.items()}


def _parse_weights(content: str) -> dict[str, int]:
    """Parses the weights in a file. Raises RefusedError."""
    entries = parse_entries(content)
    for name, weight in entries.items():
        if not weight.isdecimal() or int(weight) > _MAX_WEIGHT:
            raise RefusedError(f"the weight of {name} is not a number from 0 to {_MAX_WEIGHT}")
    return {name: int(weight) for name, weight in entries.items()}


def _changed_weights(servers: Mapping[str, tuple[int, int]], named: Mapping[str, int]) -> dict[str, int]:
    wanted = {name: named.get(name, configured) for name, (_, configured) in servers.items()}
    return {name: weight for name, weight in wanted.items() if weight != servers[name][0]}
