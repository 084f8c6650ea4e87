"""Client for HAProxy's runtime API. It opens one connection to the Unix socket for each command.

Source: HAProxy's management guide, section 9.3.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

TIMEOUT_SECONDS = 5.0


class UnreachableError(Exception):
    """HAProxy does not answer on its socket: it is starting, hangs, or has ended."""

    code = "unreachable"


class RuntimeApi:
    """A client of HAProxy at the Unix socket `path`. It has no state between two commands."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def instance_id(self) -> object:
        """A value that differs after each start of HAProxy, which creates a new socket."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    async def send_command(self, command: str, payload: str | None = None) -> str:
        """Returns the response to one command, without blank lines around it; empty if HAProxy sends no text.

        A `payload` consists of complete, non-empty lines, and is shorter than HAProxy's buffer. Raises
        UnreachableError.
        """
        question = f"{command}\n" if payload is None else f"{command} <<\n{payload}\n"
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                reader, writer = await asyncio.open_unix_connection(self._path)
                try:
                    writer.write(question.encode())
                    await writer.drain()
                    answer = await reader.read()
                finally:
                    writer.close()
        except (OSError, TimeoutError) as error:
            reason = "no answer in time" if isinstance(error, TimeoutError) else error.strerror
            raise UnreachableError(f"HAProxy cannot be reached at {self._path}: {reason}") from None
        return answer.decode(errors="replace").strip()
