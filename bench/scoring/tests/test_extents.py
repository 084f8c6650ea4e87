"""Tests of replaced text that reaches beyond a match."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.scoring.extents import end_of, last_characters, private_key_end
from bench.scoring.rules import Extent, Rule, load_pack

RULE = next(rule for rule in load_pack("secrets") if rule.id == "secret-jwt")
LINE = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj"


def rule(regex: str, extent: Extent = "token") -> Rule:
    return replace(RULE, regex=regex, extent=extent)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("key-abcdEFGH123_-+/== rest", " rest"),
        ("key-abcdef.gh.ij, rest", ", rest"),
        ("key-abcdef... rest", "... rest"),
        ("key-abcdef%2Bgh%", "%"),
        ('key-abcdef"', '"'),
        (r"key-abcdef\/gh\u002Bij\\\u003d\n", r"\n"),
        (r"key-abcdef\u0022", r"\u0022"),
    ],
)
def test_a_token_that_is_cut_off_goes_on_to_its_end(text: str, left: str) -> None:
    assert text[end_of(rule("key-[a-z]{2,4}"))(text, 8) :] == left


@pytest.mark.parametrize(
    ("regex", "text", "matched"),
    [
        ("key-[a-z]{2,4}", "key-abc/def", 7),
        ("key-[a-z]{2,4}", "key-abc.def", 7),
        ("key-[a-z]{4}", "key-abcdef", 8),
        ("(?<value>[a-z]{2,4})@[a-z]{2,8}", "abcde@host", 4),
    ],
)
def test_what_follows_a_whole_match_stays(regex: str, text: str, matched: int) -> None:
    assert end_of(rule(regex))(text, matched) == matched


@pytest.mark.parametrize(
    ("regex", "last"),
    [
        ("a(?:b|c[x-z]{1,2}|d[0-9]{3})", "XYZxyz"),
        (r"a[a-c]{1,2}=?\b", "ABCabc"),
        ('a(?<value>b[x-z]{1,2})"?', "XYZxyz"),
        ('a[!# "]{1,2}', "!#"),
        ("a[0-9]{3}(?:x|y)", ""),
    ],
)
def test_the_last_repetition_is_found_in_every_branch(regex: str, last: str) -> None:
    assert last_characters(regex) == set(last)


def test_a_private_key_ends_behind_its_last_words() -> None:
    key = f"{LINE}\n  17\u2192{LINE}\\nqHkr3Q==\n-----END \x50RIVATE KEY----- and"
    assert key[private_key_end(key, 24) :] == " and"
    cut = f"{LINE}\n\nThen he went home again."
    assert cut[private_key_end(cut, 24) :] == "\n\nThen he went home again."
