"""The protocol of a driver: one JSON request a line on standard input, one JSON outcome a line on standard output."""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: More turns than any scenario takes.
MAX_TURNS = 40
#: Timeout in seconds for libraries whose default is too short for a busy machine.
PATIENCE = 300


@dataclass(frozen=True)
class Settings:
    """The settings that point a client to the gateway instead of its provider."""

    base_url: str
    key: str
    model: str
    api: str


def settings() -> Settings:
    """The settings from the environment variables."""
    return Settings(*(os.environ[f"PROOFGATE_{name}"] for name in ("BASE_URL", "KEY", "MODEL", "API")))


def read_file(path: str) -> tuple[str, bytes]:
    """The type and the bytes of a file of the project."""
    kinds = {".png": "image/png", ".pdf": "application/pdf"}
    return kinds.get(Path(path).suffix, "text/plain"), Path(path).read_bytes()


def in_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def outcome_of(error: BaseException) -> dict[str, Any]:
    """A failure as the client reports it: its error, and the status of the response if there is one."""
    inner: BaseException | None = error
    status = None
    while inner is not None and status is None:
        status = getattr(inner, "status_code", None) or getattr(inner, "code", None)
        inner = inner.__cause__ or inner.__context__
    return {"failed": {"kind": type(error).__name__, "status": status, "message": str(error)[:2000]}}


async def serve(does: dict[str, Callable[[str], Awaitable[str]]]) -> None:
    """Answers one line after another until the input ends."""
    for line in sys.stdin:
        asked = json.loads(line)
        outcome: dict[str, Any] = {"not_offered": True}
        if asked["does"] in does:
            try:
                outcome = {"text": await does[asked["does"]](asked["prompt"])}
            except Exception as error:
                outcome = outcome_of(error)
        print(json.dumps(outcome), flush=True)
