"""Object lock: the mirror requests it, and trusts the store only after it has read the lock back."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any, cast

import pytest

from proofgate.mirror.s3 import BucketTarget, ObjectLock
from proofgate.mirror.s3_client import S3Client
from proofgate.mirror.target import MirrorError, MirrorObject

PIECE = MirrorObject.from_bytes("ledger/0/x", b"content")
KEY = "x/ledger/0/x"
ASKED = ObjectLock("COMPLIANCE", 400)
DAY = 86_400


class Answer:
    """A store's response."""

    def __init__(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        self.status_code, self.headers, self.raw = status, dict(headers or {}), None


class Store:
    """A store that keeps every object, and the lock that `keeps` returns."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, str]] = {}
        self.keeps: Callable[[str, str], tuple[str, str] | None] = lambda mode, until: (mode, until)
        self.retained = 0

    def place(self, mode: str, seconds: float, written: float) -> None:
        """Stores the piece as another client would."""
        self.objects[KEY] = self._object(PIECE.length, base64.b64encode(PIECE.sha256).decode(), written)
        self._lock(KEY, mode, _text(time.time() + seconds))

    @contextmanager
    def request(
        self,
        method: str,
        key: str = "",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: MirrorObject | None = None,
    ) -> Iterator[Answer]:
        headers = headers or {}
        if method == "HEAD":
            yield Answer(200, self.objects[key]) if key in self.objects else Answer(404)
        elif query and "retention" in query:
            assert body is not None
            text = b"".join(body.chunks()).decode()
            told = {
                name: text.partition(f"<{name}>")[2].partition("<")[0] for name in ("Mode", "RetainUntilDate")
            }
            self._lock(key, told["Mode"], told["RetainUntilDate"])
            self.retained += 1
            yield Answer(200)
        else:
            assert body is not None
            self.objects[key] = self._object(body.length, headers["X-Amz-Checksum-Sha256"], time.time())
            self._lock(key, headers["X-Amz-Object-Lock-Mode"], headers["X-Amz-Object-Lock-Retain-Until-Date"])
            yield Answer(200)

    @staticmethod
    def _object(length: int, checksum: str, written: float) -> dict[str, str]:
        return {
            "Content-Length": str(length),
            "x-amz-checksum-sha256": checksum,
            "Last-Modified": formatdate(written, usegmt=True),
        }

    def _lock(self, key: str, mode: str, until: str) -> None:
        kept = self.keeps(mode, until)
        if kept is not None:
            self.objects[key]["x-amz-object-lock-mode"] = kept[0]
            self.objects[key]["x-amz-object-lock-retain-until-date"] = kept[1]


def _text(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


@pytest.fixture
def store() -> Store:
    return Store()


def bucket(store: Store, lock: ObjectLock = ASKED) -> BucketTarget:
    return BucketTarget("s3://evidence", cast("S3Client", store), "x", lock)


def test_an_object_is_locked_as_asked_and_not_locked_again(store: Store) -> None:
    assert bucket(store).put(PIECE) is True
    assert bucket(store).put(PIECE) is False
    assert store.retained == 0


@pytest.mark.parametrize(
    "keeps",
    [
        lambda *_: None,
        lambda _, until: ("GOVERNANCE", until),
        lambda mode, _: (mode, _text(time.time() + 5)),
        lambda mode, _: (mode, _text(time.time() + 399 * DAY)),
        lambda mode, _: (mode, "for ever"),
    ],
)
def test_a_store_that_locks_less_than_was_asked_is_told(store: Store, keeps: Any) -> None:
    store.keeps = keeps
    with pytest.raises(MirrorError) as caught:
        bucket(store).put(PIECE)
    assert caught.value.code == "mirror_not_locked"


@pytest.mark.parametrize(
    ("mode", "seconds", "written"),
    [
        ("GOVERNANCE", 5, 0),
        ("GOVERNANCE", 500 * DAY, 0),
        ("COMPLIANCE", 5, 0),
        ("COMPLIANCE", 30 * DAY, -DAY),
    ],
)
def test_what_is_there_and_locked_less_than_is_asked_is_locked_again(
    store: Store, mode: str, seconds: float, written: float
) -> None:
    store.place(mode, seconds, time.time() + written)
    assert bucket(store).put(PIECE) is False
    assert store.retained == 1
    assert store.objects[KEY]["x-amz-object-lock-mode"] == "COMPLIANCE"
    store.place(mode, seconds, time.time() + written)
    store.keeps = lambda *_: None
    with pytest.raises(MirrorError):
        bucket(store).put(PIECE)


def test_the_days_count_from_when_an_object_was_written(store: Store) -> None:
    store.place("COMPLIANCE", 100 * DAY, time.time() - 300 * DAY)
    assert bucket(store).put(PIECE) is False
    assert store.retained == 0


def test_a_firmer_lock_is_as_good(store: Store) -> None:
    store.place("COMPLIANCE", 31 * DAY, time.time())
    assert bucket(store, ObjectLock("GOVERNANCE", 30)).put(PIECE) is False
    assert store.retained == 0
