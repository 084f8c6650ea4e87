"""Tests of the load generators' requests."""

import json

from bench import request


def test_a_prompt_has_the_size_that_was_asked_for() -> None:
    assert [len(request.prompt(size)) for size in (1, 1_024, 131_072)] == [1, 1_024, 131_072]


def test_only_a_stream_asks_for_one() -> None:
    assert "stream" not in json.loads(request.chat("hello"))
    assert json.loads(request.chat("hello", stream=True))["stream"] is True


def test_lua_strings_escape_what_would_end_them() -> None:
    assert request.lua_string('a"b\\\r\n') == '"a\\034b\\092\\013\\010"'


def test_a_digit_after_an_escape_does_not_become_part_of_it() -> None:
    assert request.lua_string("\n7") == '"\\0107"'


def test_both_readings_of_a_request_with_two_framings_take_the_same_bytes() -> None:
    both = request.malformed("/v1", {"X-Key": "k"}, '{"a": 1}')[0]
    head, body = both.split("\r\n\r\n", 1)
    length = next(int(line.split(":")[1]) for line in head.split("\r\n") if line.startswith("Content-Length"))
    assert length == len(body)
    assert body.endswith("\r\n0\r\n\r\n")


def test_every_malformed_request_differs_from_a_well_formed_one() -> None:
    conflict, bare, folded, hosts = request.malformed("/v1", {}, "{}")
    assert "Transfer-Encoding: chunked" in conflict
    assert "bare\n\r\n" in bare and "bare\r\n" not in bare
    assert "\r\n here\r\n" in folded
    assert hosts.count("Host:") == 2
