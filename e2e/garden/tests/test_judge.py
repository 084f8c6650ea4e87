"""The comparison itself: a parser that reads a request differently is reported, one that reads the same is not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from e2e.garden.exceptions import EXEMPTIONS, excuse
from e2e.garden.generator import candidates
from e2e.garden.judge import judge, unaccounted
from e2e.garden.oracles import Oracle
from e2e.garden.reading import Message, Reading
from e2e.garden.sender import FOLLOWER_READING, Answers, answers_in

READING = Reading("POST", "/v1/models", "gw", "length", 2, "aa")
MESSAGE = Message("test", b"POST /v1/models HTTP/1.1\r\nHost: gw\r\nContent-Length: 2\r\n\r\n{}", READING, True)
GO, NODE, NGINX = Oracle("go", 1), Oracle("node", 1), Oracle("nginx", 1, is_proxy=True)


def difference(oracle: Oracle, message: Message, *readings: Reading, refusal: int | None = None) -> str | None:
    return judge(oracle, message, Answers(readings, refusal)).difference


def test_the_same_reading_and_the_next_request_pass() -> None:
    assert difference(GO, MESSAGE, READING, FOLLOWER_READING) is None


@pytest.mark.parametrize(
    "other",
    [
        {"method": "GET"},
        {"target": "/v1/model"},
        {"host": "gw2"},
        {"framing": "chunked"},
        {"length": 3},
        {"sha256": "bb"},
    ],
)
def test_any_other_reading_is_a_difference(other: dict[str, str]) -> None:
    assert difference(GO, MESSAGE, replace(READING, **other), FOLLOWER_READING)  # type: ignore[arg-type]


def test_a_next_request_that_starts_elsewhere_is_a_difference() -> None:
    assert difference(GO, MESSAGE, READING, replace(FOLLOWER_READING, method="ST"))
    assert difference(GO, MESSAGE, READING, refusal=400)
    assert difference(GO, MESSAGE, READING)
    assert difference(GO, MESSAGE, READING, FOLLOWER_READING, FOLLOWER_READING)


def test_a_connection_that_stays_open_although_it_should_end_is_a_difference() -> None:
    last = replace(MESSAGE, keep_alive=False)
    assert difference(GO, last, READING) is None
    assert judge(GO, last, Answers((READING,), unfinished=True)).difference


def test_a_refusal_is_a_difference_unless_it_is_exempt() -> None:
    assert difference(NODE, MESSAGE, refusal=400)
    odd = replace(MESSAGE, reading=replace(READING, method="A!"))
    assert judge(NODE, odd, Answers((), 400)).exemption == "unknown method"
    assert difference(GO, odd, refusal=400)


def test_only_a_proxy_may_frame_a_body_anew() -> None:
    chunked = replace(MESSAGE, reading=replace(READING, framing="chunked"))
    assert difference(NGINX, chunked, READING, FOLLOWER_READING) is None
    assert difference(GO, chunked, READING, FOLLOWER_READING)


def test_an_absolute_target_is_compared_in_origin_form() -> None:
    for target, host in [("http://GW/v1/models", "GW:80"), ("HTTP://gw:80/v1/models", "gw")]:
        assert difference(GO, MESSAGE, replace(READING, target=target, host=host), FOLLOWER_READING) is None
    assert difference(GO, MESSAGE, replace(READING, target="http://gw/v1", host="gw"), FOLLOWER_READING)


def test_a_request_that_only_the_server_behind_a_proxy_saw_is_counted() -> None:
    answers = [Answers((READING, FOLLOWER_READING), served=3)]
    assert unaccounted(NGINX, [judge(NGINX, MESSAGE, answers[0])], answers) == 1


def test_every_exemption_is_of_a_known_oracle_and_excuses_nothing_ordinary() -> None:
    known = {"hyper", "httptools", "h11", "go", "node", "nginx", "haproxy"}
    assert all(each.oracles <= known and each.reason and each.source for each in EXEMPTIONS)
    assert not any(excuse(oracle, MESSAGE, closes) for oracle in known for closes in (True, False))


def test_responses_are_split_where_they_end() -> None:
    read = b'HTTP/1.1 200 OK\r\nx-read: {"method": "POST", "length": 2}\r\ncontent-length: 0\r\n\r\n'
    answers = answers_in(b"HTTP/1.1 100 Continue\r\n\r\n" + read + b"HTTP/1.1 400 Bad Request\r\n\r\nno", False)
    assert [(each.method, each.length) for each in answers.readings] == [("POST", 2)]
    assert answers.refusal == 400


def test_the_generator_makes_the_same_requests_from_the_same_seed() -> None:
    first, again, other = (list(candidates(50, seed, [b"GET / HTTP/1.1\r\n\r\n"])) for seed in ("a", "a", "b"))
    assert first == again and first != other
