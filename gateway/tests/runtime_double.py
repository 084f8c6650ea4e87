"""A stand-in for HAProxy's runtime socket: a map with the commands to show, replace and change it, and
servers with weights and addresses."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

_STATE_FIELDS = (
    "# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight"
    " srv_time_since_last_change srv_check_status srv_check_health bk_f_forced_id srv_f_forced_id srv_fqdn"
    " srv_port"
)


class RuntimeDouble:
    """Answers on a Unix socket in its context; a command that starts with a key of `refusal` gets its value.

    `up` contains the health (2: not checked, 3: fully up) of each server of `weights` that is up; `addresses`
    contains the address of each server that is not in maintenance.
    """

    def __init__(self, path: Path, held: dict[str, str] | None = None) -> None:
        self.path = path
        self.held = dict(held or {})
        self.weights: dict[str, int] = {}
        self.up: dict[str, int] = {}
        self.addresses: dict[str, str] = {}
        self.checked = True
        self._written: dict[str, str] = {}
        self.refusal: dict[str, str] = {}
        self.questions: list[str] = []
        self.map: Path | None = None
        self.version = 0
        self._prepared: dict[str, str] = {}
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> RuntimeDouble:
        self._server = await asyncio.start_unix_server(self._serve, self.path)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()
        # The file is kept, so that a later socket gets another inode number.
        with suppress(FileNotFoundError):
            self.path.replace(self.path.with_name("ended.sock"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        question = (await reader.readline()).decode().rstrip("\n")
        lines = []
        if question.endswith(" <<"):
            while line := (await reader.readline()).decode().rstrip("\n"):
                lines.append(line)
        self.questions.append(question)
        writer.write(f"{self._answer(question, lines)}\n".encode())
        await writer.drain()
        writer.close()

    def _answer(self, question: str, lines: list[str]) -> str:
        for beginning, text in self.refusal.items():
            if question.startswith(beginning):
                return f"{text}\n"
        match question.split()[0]:
            case "set" | "del" if question.split()[1] == "map":
                for command in question.split("; "):
                    verb, _, _, key, *value = command.split()
                    if key not in self.held:
                        return "entry not found.\n"
                    if verb == "del":
                        del self.held[key]
                    else:
                        self.held[key] = value[0]
            case "set":
                for command in question.split("; "):
                    _, _, server, what, new = command.split()
                    self._set(server.removeprefix("workers/"), what, new)
            case "show" if question == "show servers state workers":
                rows = []
                for name, held in self.weights.items():
                    state, checked = (2, self.up[name]) if name in self.up else (0, 0)
                    address = self.addresses.get(name)
                    place = f"{address or '203.0.113.1'} {state} {4 if address else 5}"
                    ever = 15 if self.checked else 1
                    rows.append(
                        f"4 workers 1 {name} {place} {held} 100 7 {ever} {checked} 0 1 {name}.test 8080"
                    )
                return "\n".join(["1", _STATE_FIELDS, *rows, ""])
            case "show" if question == "show map":
                summary = f"curr_ver={self.version} next_ver={self.version} entry_cnt={len(self.held)}"
                return f"# id (file) description\n0 ({self.map}) pattern loaded from file {summary}\n"
            case "show":
                return "".join(f"0x7f00 {key} {value}\n" for key, value in self.held.items())
            case "prepare":
                self._prepared = {}
                return "New version created: 7\n"
            case "add":
                assert sum(len(line) + 1 for line in lines) < 16_000, (
                    "the command is too long for HAProxy's buffer"
                )
                into = self._prepared if question.split()[2].startswith("@") else self.held
                assert not into.keys() & {line.split()[0] for line in lines}, (
                    "HAProxy would have two entries for a key"
                )
                into |= dict(line.split() for line in lines)
            case "commit":
                self.held = self._prepared
                self.version += 1
        return ""

    def _set(self, name: str, what: str, value: str) -> None:
        match what, value:
            case "weight", _:
                self.weights[name] = int(value)
            case "addr", _:
                self._written[name] = value
            case "state", "maint":
                self._written[name] = self.addresses.pop(name)
                self.up.pop(name, None)
            case "state", "ready":
                self.addresses[name] = self._written[name]
                self.up[name] = 2
            case "health", "down":
                del self.up[name]
