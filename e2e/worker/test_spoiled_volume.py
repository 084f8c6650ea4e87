"""A worker whose volume was changed: it starts, or exits with a reason, and never waits forever."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from e2e.local_gateway import KEYS, LocalGateway, local_gateway
from e2e.programs import NotReadyError
from e2e.worker.raw_http import chat_request, send, status_of

BODY = json.dumps({"model": "gpt-4o-mini", "messages": [{"role": "user", "content": "hello"}]}).encode()


def _is_served(gateway: LocalGateway) -> bool:
    return status_of(send(gateway.address, chat_request(BODY, KEYS["acme"]))) == 200


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalGateway]:
    """A gateway whose worker was killed, so that the next one must read its remains."""
    settings = {"ledger": {"segmentBytes": 1 << 20}}
    with local_gateway(tmp_path_factory.mktemp("killed"), settings=settings) as gateway:
        assert all(_is_served(gateway) for _ in range(5))
        assert gateway.worker is not None
        gateway.worker.stop(signal.SIGKILL)
        yield gateway


def _link_to_endless(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


SPOILED: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "folder": Path.mkdir,
    "link to an endless device": _link_to_endless,
    "link to itself": _link_to_itself,
}


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


@pytest.mark.parametrize("kind", SPOILED)
def test_a_worker_starts_or_says_why_not_whatever_stands_in_the_place_of_a_file(
    killed: LocalGateway, tmp_path: Path, kind: str
) -> None:
    [shard] = [path for path in killed.ledger.iterdir() if path.name == "0"]
    places = sorted(path.relative_to(killed.ledger) for path in killed.ledger.rglob("*"))
    assert len(places) > 8 and shard.relative_to(killed.ledger) in places
    outcomes: dict[str, str] = {}
    for number, place in enumerate(places):
        if kind == "folder" and (killed.ledger / place).is_dir():
            continue
        folder = tmp_path / str(number)
        shutil.copytree(killed.folder, folder)
        spoiled = dataclasses.replace(killed, folder=folder, worker=None)
        spoiled.write_configuration()
        _remove(spoiled.ledger / place)
        SPOILED[kind](spoiled.ledger / place)
        try:
            spoiled.start_worker(attempts=1)
        except NotReadyError as error:
            # The worker must have exited; a timeout is a failure.
            assert "ended with exit code" in str(error), f"{place}: {error}"
            assert "Traceback" not in str(error) and "panicked" not in str(error), f"{place}: {error}"
            outcomes[str(place)] = str(error)
        else:
            assert spoiled.worker is not None
            assert _is_served(spoiled), place
            assert spoiled.worker.stop() == 0, place
        shutil.rmtree(folder)
    segment = next(str(place) for place in places if place.suffix == ".seg")
    assert segment in outcomes and segment in outcomes[segment]
