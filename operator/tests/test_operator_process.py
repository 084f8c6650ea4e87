"""What surrounds the loop: settings, wake-ups, proof of life, events, the words of the log."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest
from aiohttp import ClientPayloadError

from proofgate_operator.api.conditions import Condition, ConditionStatus, ConditionType, merge
from proofgate_operator.events import event, transitions
from proofgate_operator.handlers import secrets
from proofgate_operator.handlers.probe import Pulse
from proofgate_operator.handlers.secrets import Readers
from proofgate_operator.handlers.wake import Wakes
from proofgate_operator.kube.client import ApiError, Client
from proofgate_operator.main import _is_news
from proofgate_operator.settings import InvalidSettings, read_settings
from tests.gateways import gateway

IMAGES = {"WORKER_IMAGE": "w", "HAPROXY_IMAGE": "h"}


def condition(status: ConditionStatus, kind: ConditionType = ConditionType.READY) -> Condition:
    return Condition(kind, status, "Because", "words")


def test_settings_come_from_the_environment_and_options_win() -> None:
    environment = {**IMAGES, "WATCH_NAMESPACES": "a, b", "RESYNC_SECONDS": "10"}
    settings = read_settings(["--resync-seconds", "20"], environment)
    assert settings.watch_namespaces == ("a", "b")
    assert settings.resync_seconds == 20
    assert settings.defaults.worker_image == "w"


@pytest.mark.parametrize(
    ("environment", "complaint"),
    [
        ({"WORKER_IMAGE": "w"}, "HAPROXY_IMAGE is required"),
        ({**IMAGES, "HAPROXY_IMAGE": ""}, "HAPROXY_IMAGE is required"),
        ({**IMAGES, "RESYNC_SECONDS": "soon"}, "RESYNC_SECONDS must be a number"),
        ({**IMAGES, "RESYNC_SECONDS": "0"}, "RESYNC_SECONDS must be at least 1"),
        ({**IMAGES, "LOG_FORMAT": "xml"}, "LOG_FORMAT must be one of json, text"),
    ],
)
def test_a_senseless_setting_is_named(environment: dict[str, str], complaint: str) -> None:
    with pytest.raises(InvalidSettings, match=complaint):
        read_settings([], environment)


async def test_an_event_during_a_look_is_not_missed() -> None:
    wakes = Wakes()
    wakes.begin("team", "demo")
    wakes.wake("team", "demo")
    await asyncio.wait_for(wakes.sleep("team", "demo", 60), 1)


async def test_an_event_of_a_gateway_without_a_loop_leaves_nothing_behind() -> None:
    wakes = Wakes()
    wakes.wake("team", "unknown")
    assert wakes._flags == {}


async def test_sleep_ends_by_itself() -> None:
    wakes = Wakes()
    wakes.begin("team", "demo")
    await asyncio.wait_for(wakes.sleep("team", "demo", 0.01), 1)


def test_a_gateway_that_nobody_looks_at_is_neglected_and_a_deleted_one_forgotten() -> None:
    now = [0.0]
    pulse = Pulse(silence_seconds=300, clock=lambda: now[0])
    pulse.known({"a", "b"})
    now[0] = 200
    pulse.beat("a")
    assert pulse.neglected() == []
    now[0] = 400
    assert pulse.neglected() == ["b"]
    pulse.known({"a"})
    assert pulse.neglected() == []


def test_a_condition_that_changed_is_an_event_once() -> None:
    bad = condition(ConditionStatus.FALSE)
    assert transitions([], [bad]) == [bad]
    assert transitions(merge([], [bad], 1, "now"), [bad]) == []
    good = condition(ConditionStatus.TRUE)
    assert transitions(merge([], [bad], 1, "now"), [good]) == [good]


def test_the_first_sight_of_something_good_is_no_event() -> None:
    assert transitions([], [condition(ConditionStatus.TRUE)]) == []


def test_an_event_points_at_its_gateway() -> None:
    found = event(gateway(), condition(ConditionStatus.FALSE), "2026-01-01T00:00:00Z")
    assert found["type"] == "Warning" and found["reason"] == "Because"
    assert found["involvedObject"]["name"] == "demo" and found["metadata"]["namespace"] == "team"


def test_wake_up_calls_are_no_news() -> None:
    def record(text: str) -> logging.LogRecord:
        return logging.LogRecord("kopf.objects", logging.INFO, "", 0, text, None, None)

    assert not _is_news(record("Handler 'wake_owner' succeeded."))
    assert _is_news(record("applied Service demo"))


def test_a_secret_is_read_by_the_gateways_of_its_namespace_that_name_it() -> None:
    readers = Readers()
    readers.note("team", "a", frozenset({"keys", "openai"}))
    readers.note("team", "b", frozenset({"keys"}))
    readers.note("other", "c", frozenset({"keys"}))
    assert sorted(readers.of("team", "keys")) == ["a", "b"]
    assert readers.of("team", "openai") == ["a"]
    readers.note("team", "a", frozenset())
    readers.forget("team", "b")
    assert readers.of("team", "keys") == []


class Watched(Client):
    """An API server whose watch tells some changes, and then breaks as it is told to."""

    def __init__(self, *ends: Exception) -> None:
        self.ends = list(ends)

    async def changes(
        self, kind: str, namespace: str | None, selector: str = ""
    ) -> AsyncIterator[tuple[str, str]]:
        assert (kind, namespace) == ("Secret", "team")
        if self.ends:
            raise self.ends.pop(0)
        yield "team", "keys"
        await asyncio.Event().wait()


async def test_a_watch_of_secrets_that_breaks_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_PAUSE_SECONDS", 0)
    readers, wakes = Readers(), Wakes()
    readers.note("team", "demo", frozenset({"keys"}))
    wakes.begin("team", "demo")
    client = Watched(ApiError(410, "Expired", "too old"), ClientPayloadError(), TimeoutError())
    following = asyncio.create_task(secrets.follow_secrets(client, "team", readers, wakes))
    await asyncio.wait_for(wakes.sleep("team", "demo", 60), 5)
    following.cancel()
    assert client.ends == []
