"""HAProxy's runtime API: one command for each connection to its Unix socket.

Source: HAProxy's management guide, section 9.3.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

TIMEOUT_SECONDS = 5.0


class UnreachableError(Exception):
    """HAProxy does not answer on its socket: it starts, hangs, or is gone."""

    code = "unreachable"


class RuntimeApi:
    """Asks HAProxy on the Unix socket at `path`. Nothing is kept between two questions."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def instance_id(self) -> object:
        """What is another one after each start of HAProxy, which makes its socket anew."""
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    async def send_command(self, command: str, payload: str | None = None) -> str:
        """The answer to one command, without blank lines around it; empty when HAProxy has nothing to say.

        A `payload` is text of whole lines without an empty one, shorter than HAProxy's buffer. Raises
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
