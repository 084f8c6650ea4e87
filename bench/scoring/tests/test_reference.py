"""The reference does what SEMANTICS.md says, example by example."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from bench.scoring.checks import CHECKS
from bench.scoring.folding import folded, plain
from bench.scoring.reference import NOTHING, Match, Reference
from bench.scoring.rules import Rule
from bench.scoring.spared import Allow

ANY = Rule("test", True, "any", "Test.", "both", "folded", (), None, None, 10, "flag", (), ())


def rule(**fields: Any) -> Rule:
    return replace(ANY, **fields)


def spans(text: str, *rules: Rule, direction: str = "request", allow: Allow = NOTHING) -> set[tuple[int, int]]:
    scanned = Reference(rules, allow).scan(text, "response" if direction == "response" else "request")
    return {(match.start, match.end) for match in scanned}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Ignore\tALL\r\n", "ignore all "),
        ("ig\0nore\x7f a\x9bll", "ignore all"),
        ("ignore \n\u2028\u200b\u00a0 all", "ignore all"),
        ("ig**no**re `ig`nore", "ignore `ignore"),
        ("ig<B>no</b>re<wbr/>d", "ignored"),
        ("ig<!-- x -->nore", "ignore"),
        ("ig&#110;ore&nbsp;&#x61;ll", "ignore all"),
        ("ig<br>nore ig_nore a ** b", "ig<br>nore ig_nore a ** b"),
        ("&#110 &#xd800; &amp;#110;", "&#110 &#xd800; &#110;"),
        ("pr\u00e9c\u00e9dent", "precedent"),
        ("pre\u0301ce\u0301dent", "precedent"),
        ("ign\u043ere", "ignore"),
        ("i\u200bg\u00adn\u202eore", "ignore"),
        ("\uff29\uff27\uff2e", "ign"),
        ("\U0001d408\U0001d420", "ig"),
        ("\U0001f178\U0001f1ec", "ig"),
        ("\U000e0049\U000e0067", "ig"),
        ("a\u3000b\u2003c\u00a0d", "a b c d"),
        ("\u201chi\u201d \u2014 it\u2019s", '"hi" - it\'s'),
        ("\u00bd \ufb01 \u2122", "1\u20442 fi tm"),
        ("\u5ffd\u7565 \u3067", "\u5ffd\u7565 \u3067"),
    ],
)
def test_folding_undoes_a_disguise(text: str, expected: str) -> None:
    assert folded(text) == expected


def test_the_folded_copy_of_printable_ascii_is_the_plain_one() -> None:
    ascii_text = "".join(map(chr, range(32, 127)))
    assert folded(ascii_text) == plain(ascii_text)


def test_the_plain_copy_is_as_long_as_the_text() -> None:
    ascii_text = "".join(map(chr, range(128)))
    assert len(plain(ascii_text)) == len(ascii_text)


def test_what_is_folded_away_is_covered_inside_a_match_and_not_beside_it() -> None:
    assert spans("  ig**no**re \n all  ", rule(literals=("ignore all",))) == {(2, 18)}
    assert spans("*key&#121;&nbsp;", rule(literals=("keyy",))) == {(1, 10)}


def test_positions_are_bytes_of_the_text_and_not_of_the_folded_copy() -> None:
    text = "\u00e4 \u0456gn\u200bore!"
    assert spans(text, rule(literals=("ignore",))) == {(3, 3 + len("\u0456gn\u200bore".encode()))}


def test_dropped_characters_at_the_border_are_not_covered() -> None:
    assert spans("\u200bkey\u200b", rule(literals=("key",))) == {(3, 6)}


def test_one_character_that_becomes_several_is_covered_whole() -> None:
    assert spans("\ufb01x", rule(literals=("ix",))) == {(0, 4)}


def test_matches_do_not_overlap_and_the_first_literal_wins() -> None:
    assert spans("aaaa", rule(literals=("aa", "aaa"))) == {(0, 2), (2, 4)}


def test_a_match_without_a_literal_takes_nothing_from_later_ones() -> None:
    assert spans("ab ab key", rule(regex="[a-z ]{3,9}", literals=("b key",))) == {(0, 9)}
    assert spans("abcdkey", rule(regex="[a-z]{4}", literals=("key",))) == {(3, 7)}


def test_a_match_that_fails_its_check_takes_its_characters_with_it() -> None:
    assert spans("aaaa1b", rule(regex="[a-z0-9]{4}", check="Mixed")) == set()
    assert spans("aa1a1b", rule(regex="[a-z0-9]{3}", check="Mixed")) == {(0, 3), (3, 6)}


def test_only_the_value_of_a_match_is_reported() -> None:
    assignment = rule(regex='key"? ?[=:] ?"?(?<value>[^ "]{3,9})')
    assert spans('{"Key": "abc"}', assignment) == {(9, 12)}
    assert spans("k&#101;y =  \u0430bc\u200b", assignment) == {(12, 16)}
    assert spans("sk-1 key=abc", rule(regex="key=(?<value>[a-z]{3})|sk-1")) == {(0, 4), (9, 12)}


def test_a_check_is_about_the_value() -> None:
    assert spans("k=12345 k=a1234", rule(regex="k=(?P<value>[a-z0-9]{5})", check="Mixed")) == {(10, 15)}


def test_a_pattern_of_the_folded_view_is_folded_itself() -> None:
    assert spans("PRECEDENT", rule(regex="pr\u00e9c\u00e9dent")) == {(0, 9)}
    assert spans("\u0438\u0433\u043d\u043e\u0440", rule(literals=("\u0438\u0433\u043d\u043e\u0440",))) == {(0, 10)}


def test_a_pattern_of_the_text_view_sees_case_and_disguise() -> None:
    assert spans("KEY key", rule(regex="KEY", view="text")) == {(0, 3)}
    assert spans("KEY key", rule(regex="[A-Za-z]{3}", literals=("key",), view="text")) == {(0, 3), (4, 7)}


def test_word_boundaries_are_those_of_ascii() -> None:
    assert spans("\u0436key", rule(regex=r"\bkey\b", view="text")) == {(2, 5)}


def test_rules_look_only_at_their_direction() -> None:
    assert spans("key", rule(literals=("key",), target="response")) == set()
    assert spans("key", rule(literals=("key",), target="response"), direction="response") == {(0, 3)}


ADDRESS = rule(regex="[a-z0-9.+-]{1,12}@[a-z0-9.]{1,30}")


@pytest.mark.parametrize(
    "address",
    [
        "Me@Acme.com",
        "me@a.acme.com",
        "robin@mail.acme.de",
        "git@code.acme.de",
        "no-reply+7@acme.de",
        "me@x.example",
        "me@example.co.uk",
        "me@users.noreply.acme.de",
    ],
)
def test_what_is_allowed_or_nobodys_is_spared(address: str) -> None:
    pii = replace(ADDRESS, pack="pii", spares_documentation=True)
    allow = Allow(domains=("ACME.com",), patterns=("*@mail.*.de",))
    assert spans(address, pii, allow=allow) == set()
    assert spans(address, ADDRESS) == {(0, len(address))}


@pytest.mark.parametrize("address", ["me@acme.com.evil.net", "me@notacme.com", "digit@acme.de", "me@example.evil.net"])
def test_what_only_looks_like_it_is_not_spared(address: str) -> None:
    pii = replace(ADDRESS, pack="pii", spares_documentation=True)
    assert spans(address, pii, allow=Allow(domains=("acme.com",))) == {(0, len(address))}


def test_an_allowed_value_is_compared_in_the_view_of_the_rule() -> None:
    allow = Allow(values=("Abc D",))
    assert spans("ABC \n d", rule(regex="abc d"), allow=allow) == set()
    assert spans("ABC D", rule(regex="[A-Z ]{5}", view="text"), allow=allow) == {(0, 5)}
    assert spans("Abc D", rule(regex="[A-Za-z ]{5}", view="text"), allow=allow) == set()


def test_published_numbers_networks_and_keys_are_spared() -> None:
    pii = replace(rule(regex="[0-9a-f.: ]{9,30}"), pack="pii", spares_documentation=True)
    assert spans("4242 4242 4242 4242", pii) == spans("203.0.113.7", pii) == spans("2001:db8::7", pii) == set()
    assert spans("4539 5787 6362 1486", pii) == {(0, 19)}
    key = replace(rule(regex="[a-z0-9]{20}"), pack="secrets", spares_documentation=True)
    assert spans("AKIAIOSFODNN7EXAMPLE", key) == set()
    assert spans("AKIAQ3EGT5MLPV6R2WXZ", key) == {(0, 20)}


def test_what_is_masked_counts_as_little_as_what_is_redacted() -> None:
    rules = [rule(id="outer", literals=("a b",), action="mask", score=100), rule(id="inner", literals=("b",), score=50)]
    reference = Reference(rules)
    verdict = reference.judge(reference.scan("a b", "request"))
    assert (verdict.decision, verdict.score) == ("mask", 0)


SECRET = rule(literals=("the secret word",))
INNER = "This holds the secret word."


@pytest.mark.parametrize(
    "encoded",
    [
        base64.b64encode(INNER.encode()).decode().rstrip("="),
        base64.urlsafe_b64encode(INNER.encode()).decode().rstrip("=") + "A",
        INNER.encode().hex(),
        "0x" + INNER.encode().hex().upper(),
        base64.b64encode(base64.b64encode(INNER.encode())).decode().rstrip("="),
        "the%20secret%20word%2e",
        "the+secret+word%2e%2e%2e",
        r"the\u0020secret\x20word\u002e",
        r"\\u0074he\\u0020secret\\u0020word",
    ],
)
def test_a_match_in_an_encoding_is_reported_where_the_encoding_stands(encoded: str) -> None:
    assert spans(f"see {encoded} there", SECRET) == {(4, 4 + len(encoded))}


@pytest.mark.parametrize("encoded", ["the%20secret%20word%2e", "%74he%20secret%20word", r"\x74he\x20secret\x20word"])
def test_what_stands_before_the_first_escape_and_the_match_is_no_part_of_it(encoded: str) -> None:
    assert spans(f"garden.{encoded}", SECRET) == {(7, 7 + len(encoded))}


def test_a_third_level_is_not_decoded() -> None:
    text = INNER
    for _ in range(3):
        text = base64.b64encode(text.encode()).decode().rstrip("=")
    assert spans(text, SECRET) == set()


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(INNER.encode()[:9]).decode(),
        base64.b64encode(b"\x00\x01\x02\x03 the secret word \x04\x05").decode(),
        base64.b64encode(b"\xff\xfe the secret word and more").decode(),
        "the%20secret+word",
        r"the\u0020secret\x20word",
    ],
)
def test_what_is_short_or_not_text_is_not_decoded(text: str) -> None:
    assert spans(text, SECRET) == set()


def test_surrogates_in_escapes_are_joined() -> None:
    assert spans(r"\ud835\udc04\u0078!", rule(literals=("ex",))) == {(0, 18)}


def test_a_long_token_is_cut() -> None:
    inner = base64.b64encode(("x" * 3060 + INNER).encode()).decode()
    assert spans(inner, SECRET) == set()


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("Luhn", "4111 1111 1111 1111", "4111 1111 1111 1112"),
        ("Luhn", "378282246310005", "0000000000000000"),
        ("Mod97", "DE89 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00"),
        ("Ssn", "219-09-9998", "666-09-9998"),
        ("Ssn", "219-09-9998", "219-00-9998"),
        ("Ipv4", "85.214.132.77", "85.214.132.256"),
        ("Ipv4", "85.214.132.7", "85.214.132.07"),
        ("Ipv4", "172.67.1.20", "126.0.0.0"),
        ("Ipv4", "41.44.1.20", "24.11.2.1"),
        ("Mailbox", "robin@acme.com", "robin@nas.acme.com:backup/"),
        ("Phone", "+49 30 901820-44", "2026-11-27 10"),
        ("Phone", "(415) 555-2671 ext. 204", "0101 0000 0000"),
        ("Phone", "030 / 90 18 20 44", "030 44.7712 03"),
        ("Phone", "4793/3446", "+4572/-3446"),
        ("Mrz", "L898902C36UTO7408122F1204159ZE184226B<<<<<10", "L898902C46UTO7408122F1204159ZE184226B<<<<<10"),
        ("Random", "kQzRtWmLpXcVbNhJ", "getAuthenticationToken"),
        ("Random", "GPzEyoL8_Es_#aJd@wy#", "correct-horse-battery-staple"),
        ("Random", "0123456789abcdef0123456789abcdef", "00000000-0000-0000-0000-000000000000"),
        ("Random", "q7Zt3LmP9xKv", "q7Zt3LmP...9xKv"),
        ("Entropy", "q7Zt3LmP9xKv2RbN", "aaaaaaaabbbbbbbb"),
        ("Mixed", "a1", "ab"),
        ("GitHub", "\u0067hp_x7Kq2mZp9RvT4wLb8NcY3sHd6FgJ1u1C3kq0", "\u0067hp_x7Kq2mZp9RvT4wLb8NcY3sHd6FgJ1u1C3kq1"),
        (
            "GitHub",
            "\u0067hr_q7Zt3LmP9xKv2RbN8wYc5Hd4Fg6Jk1Qs0VeTuWiXoAyBzCnDpE",
            "\u0067hr_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        ),
        ("Jwt", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", "eyJ0eXAiOiJKV1QifQ.e30.c2ln"),
        ("Jwt", "eyAiYWxnIiA6ICJub25lIiB9.e30.c2ln", "eyJhbGciOiJIUzI1NiJ9.e30"),
        ("Jwt", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", "eyJhbGciOiJIUzI1NiJ.e30.c2ln"),
        ("Jwt", "eyJhbGciOiJIUzI1NiJ9." + "e" * 204, "eyJhbGciOiJIUzI1NiJ9." + "e" * 203 + "."),
    ],
)
def test_a_check_tells_real_values_from_others(name: str, good: str, bad: str) -> None:
    assert CHECKS[name](good)
    assert not CHECKS[name](bad)


def judged(*rules: Rule) -> tuple[str, str | None, bool, int]:
    verdict = Reference([replace(one, literals=("key",)) for one in rules]).judge(
        {Match(one.id, 0, 1) for one in rules} | {Match(one.id, 2, 3) for one in rules}
    )
    return verdict.decision, verdict.rule, verdict.by_score, verdict.score


def test_a_rule_counts_once_however_often_it_matches() -> None:
    assert judged(rule(score=60)) == ("flag", None, False, 60)


def test_of_rules_that_match_the_same_the_strongest_counts() -> None:
    assert judged(rule(id="one", score=60), rule(id="two", score=70)) == ("flag", None, False, 70)


def test_what_is_replaced_does_not_count_and_neither_does_what_lies_within_it() -> None:
    both = rule(id="one", score=60), rule(id="two", score=100, action="redact")
    assert judged(*both) == ("redact", None, False, 0)


def test_scores_in_different_places_add_up_to_a_refusal() -> None:
    rules = [rule(id="one", score=60, literals=("key",)), rule(id="two", score=40, literals=("lock",))]
    verdict = Reference(rules).judge({Match("one", 0, 3), Match("two", 4, 8)})
    assert (verdict.decision, verdict.by_score, verdict.score) == ("block", True, 100)


def test_a_blocking_rule_needs_no_score() -> None:
    assert judged(rule(action="block", score=0)) == ("block", "any", False, 0)


def test_redaction_is_stricter_than_a_flag() -> None:
    assert judged(rule(id="one"), rule(id="two", action="redact"))[0] == "redact"


def test_no_match_is_allowed() -> None:
    assert Reference([rule(literals=("key",))]).judge(set()).decision == "allow"
