"""The file from which HAProxy loads its workers at its start, before the agent has set an address.

It contains HAProxy's state at the agent's last request, in the format of `show servers state`. Source:
HAProxy's configuration manual, `server-state-file` and `load-server-state-from-file`; its management guide,
section 9.3, for the fields. HAProxy ignores a missing, truncated or foreign file.

The file lists a worker that is down as in maintenance, because HAProxy loads a server that is `disabled` in
the configuration as up, regardless of the checks in the file (HAProxy, src/server.c, `srv_update_status`). So
the file has only addresses of workers that were up, and no outdated address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from proofgate.haproxy_sidecar import servers
from proofgate.haproxy_sidecar.servers import Server
from proofgate.haproxy_sidecar.target import RefusedError

_VERSION = "1"
# The fields that HAProxy requires in every line. Further fields, such as the use of TLS, would override a
# configuration that has changed since.
_FIELDS = (
    "be_id",
    "be_name",
    "srv_id",
    "srv_name",
    "srv_addr",
    "srv_op_state",
    "srv_admin_state",
    "srv_uweight",
    "srv_iweight",
    "srv_time_since_last_change",
    "srv_check_status",
    "srv_check_result",
    "srv_check_health",
    "srv_check_state",
    "srv_agent_state",
    "bk_f_forced_id",
    "srv_f_forced_id",
    "srv_fqdn",
    "srv_port",
    "srvrecord",
)
# Values of a server that HAProxy has not checked yet. No value depends on the time.
_UNCHECKED_FIELDS = {
    "srv_time_since_last_change": "0",
    "srv_check_status": str(servers.NEVER_CHECKED),
    "srv_check_result": "0",
    "srv_check_state": "6",
    "srv_agent_state": "0",
    "srvrecord": "-",
}


class ServerStateFile:
    """The state file at `path`, which HAProxy's configuration names. Without a path, nothing is written."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._held: Mapping[str, Server] = {}
        self._written: str | None = None
        self.trouble: str | None = None
        if path is not None:
            self._load(path)

    def save(self, found: Mapping[str, Server]) -> None:
        """Write the servers `found` for the next start of HAProxy."""
        self._held = found
        text = _render(found)
        if self._path is not None and text != self._written:
            self._written = text if self._write(self._path, text) else None

    def clear_changed_addresses(self, current: Mapping[str, str | None]) -> None:
        """Clear the stored address of each worker whose address differs from `current`, so that a starting
        HAProxy does not use it."""
        moved = {name for name, server in self._held.items() if server.address != current.get(name)}
        if moved:
            self.save(
                {
                    name: replace(server, address=None) if name in moved else server
                    for name, server in self._held.items()
                }
            )

    def _load(self, path: Path) -> None:
        try:
            held = servers.parse_servers(path.read_text(encoding="ascii"))
            self._written = _render(held)
            self._held = held
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, RefusedError):
            self.save({})

    def _write(self, path: Path, text: str) -> bool:
        """Replace the file atomically. If that fails, remove it, because it is out of date."""
        new = path.with_name(f"{path.name}.new")
        try:
            new.write_text(text, encoding="ascii")
            new.replace(path)
        except OSError as error:
            self.trouble = f"{path} cannot be written: {error.strerror}"
            self._remove(path)
            return False
        self.trouble = None
        return True

    def _remove(self, path: Path) -> None:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            self.trouble = f"{path} is out of date and cannot be removed: {error.strerror}"


def _render(found: Mapping[str, Server]) -> str:
    lines = [_VERSION, f"# {' '.join(_FIELDS)}", *(_line(server) for server in found.values())]
    return "\n".join([*lines, ""])


def _line(server: Server) -> str:
    present = server.address is not None and server.running
    row = {
        **server.row,
        **_UNCHECKED_FIELDS,
        "srv_addr": server.address if present else "-",
        "srv_op_state": str(servers.OP_STATE_RUNNING if present else 0),
        "srv_admin_state": str(_admin_state(server, present=present)),
        "srv_check_health": str(servers.RISE_HEALTH if present else 0),
    }
    return " ".join(str(row[field]) for field in _FIELDS)


def _admin_state(server: Server, *, present: bool) -> int:
    # HAProxy compares this flag with whether the server is `disabled` in its current configuration.
    configured = int(server.row["srv_admin_state"]) & servers.CONFIGURED_MAINTENANCE
    return configured if present else configured | servers.FORCED_MAINTENANCE
