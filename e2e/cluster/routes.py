"""The choice of the cluster: `CLUSTER=auto` (the default), `local`, `kind` or `current`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from . import current, kind, local, state
from .console import LabError


class Route(Protocol):
    """The operations of each kind of cluster; the modules `local`, `kind` and `current` implement them."""

    def up(self) -> None: ...

    def down(self) -> None: ...

    def healthy(self) -> bool: ...

    def status(self) -> list[str]: ...

    def load_image(self, name: str) -> None: ...

    def tag_image(self, name: str, second: str, /) -> None: ...

    def build_image(
        self, name: str, dockerfile: Path, context: Path, arguments: Mapping[str, str], stages: Mapping[str, Path], /
    ) -> None: ...

    def node_stop(self, number: int, /, *, crash: bool) -> None: ...

    def node_start(self, number: int, /) -> None: ...

    def recycle_volumes(self) -> int: ...


ROUTES: dict[str, Route] = {"local": local, "kind": kind, "current": current}


def chosen() -> str:
    """The route's name: `CLUSTER`, else the running lab's route, else `kind` if Docker answers, else `local`."""
    asked = os.environ.get("CLUSTER", "") or "auto"
    if asked == "auto":
        return state.route() or ("kind" if kind.engine_answers() else "local")
    if asked not in ROUTES:
        raise LabError(f"CLUSTER={asked} is not known", f"known: auto, {', '.join(ROUTES)}")
    existing = state.route()
    if asked != "current" and existing not in {None, asked}:
        raise LabError(f"CLUSTER={asked}, but a {existing} lab is up", f"CLUSTER={existing} down ends it")
    return asked
