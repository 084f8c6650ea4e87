"""The outcome of every kind of read of the API server, from one table for all verbs and kinds."""

import base64
import json

import pytest
from aiohttp import ClientError

from proofgate_operator.handlers.watches import SELECTORS
from proofgate_operator.kube.errors import ApiError, parse_response
from proofgate_operator.kube.failed_reads import FailedReads
from proofgate_operator.kube.reads import ReadFailed, ReadOutcome, ReadRequest, outcome_of
from proofgate_operator.kube.resources import RESOURCES
from proofgate_operator.plan.unreadable_resources import GRACE_SECONDS, UnreadableReason
from tests.api_emulator import Emulator
from tests.fake_cluster import FakeCluster
from tests.gateways import secret

GET = ReadRequest("get", "Secret", "team", "keys")
LIST = ReadRequest("list", "Secret", "team")
ACCOUNT = "system:serviceaccount:ops:proofgate"
FORBIDDEN = ApiError(
    403, "Forbidden", f'secrets "keys" is forbidden: User "{ACCOUNT}" cannot get resource "secrets"'
)
UNKNOWN_KIND = ApiError(404, "Unknown", "404 page not found")

#: Answers of the API server to a read, each with the expected outcome.
ANSWERS = {
    "401": (ApiError(401, "Unauthorized", ""), ReadOutcome.ACCESS_DENIED),
    "403": (FORBIDDEN, ReadOutcome.ACCESS_DENIED),
    "404 of the kind": (UNKNOWN_KIND, ReadOutcome.ACCESS_DENIED),
    "404 of a proxy": (ApiError(404, "NotFound", "no route"), ReadOutcome.ACCESS_DENIED),
    "404 of another object": (ApiError(404, "NotFound", "", subject="else"), ReadOutcome.ACCESS_DENIED),
    "408": (ApiError(408, "Timeout", ""), ReadOutcome.UNAVAILABLE),
    "410": (ApiError(410, "Expired", ""), ReadOutcome.UNAVAILABLE),
    "429": (ApiError(429, "TooManyRequests", ""), ReadOutcome.UNAVAILABLE),
    "500": (ApiError(500, "InternalError", ""), ReadOutcome.UNAVAILABLE),
    "503": (ApiError(503, "ServiceUnavailable", ""), ReadOutcome.UNAVAILABLE),
    "a connection that breaks": (ClientError(), ReadOutcome.UNAVAILABLE),
    "silence": (TimeoutError(), ReadOutcome.UNAVAILABLE),
}


@pytest.mark.parametrize(
    "read", [GET, LIST, ReadRequest("watch", "Secret", None)], ids=["get", "list", "watch"]
)
@pytest.mark.parametrize("answer", ANSWERS)
def test_no_answer_but_one_says_that_an_object_is_gone(read: ReadRequest, answer: str) -> None:
    error, outcome = ANSWERS[answer]
    assert outcome_of(read, error) is outcome


def test_an_object_is_gone_where_the_api_server_names_it() -> None:
    gone = ApiError(404, "NotFound", 'secrets "keys" not found', subject="keys")
    assert outcome_of(GET, gone) is ReadOutcome.NOT_FOUND
    assert outcome_of(LIST, gone) is ReadOutcome.ACCESS_DENIED


@pytest.mark.parametrize("kind", sorted(RESOURCES))
@pytest.mark.parametrize("answer", ANSWERS)
async def test_a_read_of_any_kind_that_is_no_look_finds_nothing_absent(kind: str, answer: str) -> None:
    cluster, (error, outcome) = FakeCluster(), ANSWERS[answer]

    def refuse(_: ReadRequest) -> None:
        raise error

    cluster.blink = refuse
    look = await cluster.read(kind, "team", "x")
    assert look.outcome is outcome and look.manifest is None and look.failure is not None
    with pytest.raises(ReadFailed):
        await cluster.get(kind, "team", "x")
    if isinstance(error, ApiError):
        with pytest.raises(ReadFailed):
            await cluster.list(kind, "team")


async def test_over_http_what_is_gone_what_is_refused_and_what_is_not_known_are_told_apart() -> None:
    cluster = FakeCluster()
    cluster.put(secret("keys", first="sk-test-0123456789abcdef"))
    async with Emulator(cluster).serve() as client:
        assert (await client.read("Secret", "team", "keys")).outcome is ReadOutcome.FOUND
        assert (await client.read("Secret", "team", "none")).outcome is ReadOutcome.NOT_FOUND
        assert await client.get("Secret", "team", "none") is None
        for error, outcome in ANSWERS.values():
            if isinstance(error, ApiError):
                cluster.blink = lambda _, error=error: error  # type: ignore[misc]
                assert (await client.read("Secret", "team", "keys")).outcome is outcome
                assert (await client.read("Secret", "team", "none")).outcome is outcome


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"[]", b'"text"', b"", b"null"])
def test_an_answer_that_is_no_object_is_no_look(body: bytes) -> None:
    with pytest.raises(ApiError) as raised:
        parse_response(200, body)
    assert outcome_of(GET, raised.value) is ReadOutcome.UNAVAILABLE


async def test_an_answer_that_is_another_object_is_no_look() -> None:
    cluster = FakeCluster()
    cluster.objects[("Secret", "team", "keys")] = secret("others")
    assert (await cluster.read("Secret", "team", "keys")).outcome is ReadOutcome.UNAVAILABLE


def test_the_name_of_what_is_missing_is_read_from_the_answer() -> None:
    body = {"kind": "Status", "reason": "NotFound", "details": {"name": "keys", "kind": "secrets"}}
    with pytest.raises(ApiError) as raised:
        parse_response(404, json.dumps(body).encode())
    assert outcome_of(GET, raised.value) is ReadOutcome.NOT_FOUND


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def failed(error: Exception = FORBIDDEN) -> ReadFailed:
    return ReadFailed(GET, outcome_of(GET, error), error)


def test_a_hold_says_what_cannot_be_read_until_when_it_counts_and_what_helps() -> None:
    found = FailedReads(Clock(5), Clock(1_767_225_600)).record_failure("demo", failed())
    assert found.reason is UnreadableReason.ACCESS_DENIED
    assert found.message == (
        "cannot get secrets in namespace team (403 Forbidden): cached data is "
        f"used until 2026-01-01T00:15:00Z; check with `kubectl auth can-i get secrets -n team --as={ACCOUNT}`"
    )
    encoded = base64.b64encode(b"keys").decode()
    assert "keys" not in found.message and encoded not in found.message


def test_a_hold_ends_after_its_time_however_often_it_is_tried_and_says_so() -> None:
    clock = Clock(0)
    holds = FailedReads(clock, Clock(0))
    for clock.now in range(0, GRACE_SECONDS, 7):
        assert not holds.record_failure("demo", failed()).is_expired
    clock.now = GRACE_SECONDS
    assert holds.is_retry_due("demo")
    assert holds.record_failure("demo", failed()).reason is UnreadableReason.GRACE_ENDED
    holds.retain("demo")
    assert not holds.record_failure("demo", failed()).is_expired, (
        "a reconcile without this failure starts a new hold"
    )


@pytest.mark.parametrize(
    ("since", "left"),
    [(None, GRACE_SECONDS), (900.0, GRACE_SECONDS - 100), (-9e9, 0), (5000.0, GRACE_SECONDS)],
    ids=["new", "earlier", "long ago", "the clock was set back"],
)
def test_a_restart_moves_no_end_and_a_clock_lengthens_none(since: float | None, left: float) -> None:
    clock = Clock(50)
    holds = FailedReads(clock, Clock(1000))
    assert holds.record_failure("demo", failed(), since).is_expired is (left == 0)
    clock.now += left
    assert holds.record_failure("demo", failed(), since).is_expired


def test_it_is_tried_again_after_pauses_that_grow_to_a_quarter_of_a_minute() -> None:
    clock, pauses = Clock(0), []
    holds = FailedReads(clock, Clock(0))
    assert not holds.is_retry_due("demo")
    for _ in range(12):
        holds.record_failure("demo", failed())
        began = clock.now
        while not holds.is_retry_due("demo"):
            clock.now += 0.25
        pauses.append(clock.now - began)
    assert 1 <= pauses[0] <= 1.5 and 15 <= pauses[-1] <= 18.5
    assert pauses == sorted(pauses[:5]) + pauses[5:]


def test_a_pause_that_the_api_server_asks_for_is_kept() -> None:
    clock = Clock(0)
    holds = FailedReads(clock, Clock(0))
    holds.record_failure("demo", failed(ApiError(429, "TooManyRequests", "", 40.0)))
    clock.now = 39
    assert not holds.is_retry_due("demo")


def test_every_kind_that_is_followed_is_one_that_the_table_was_tried_with() -> None:
    assert set(SELECTORS) <= set(RESOURCES)
