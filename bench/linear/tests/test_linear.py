"""Tests of the linear score in Python, and of the training of its weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.linear import examples
from bench.linear.sources import Text
from bench.linear.training import NearCopies, Sample, quantised, thresholds, trained, without_near_copies
from bench.linear.weights import PATH, Weights
from bench.linear.words import BUCKETS, HALF, halves, score, windows


def sample(text: str, source: str, *, is_attack: bool) -> Sample:
    return Sample(Text(source, text.encode()), is_attack)


def test_the_file_of_weights_gives_the_scores_that_rust_computes() -> None:
    weights = Weights.read(PATH)
    assert json.loads(examples.PATH.read_text()) == examples.expected(weights)


def test_a_file_of_weights_is_read_as_it_was_written(tmp_path: Path) -> None:
    weights = Weights.read(PATH)
    weights.write(tmp_path / "weights")
    assert (tmp_path / "weights").read_bytes() == PATH.read_bytes()
    (tmp_path / "weights").write_bytes(b"PGLINEAR" + bytes(100))
    with pytest.raises(ValueError, match="no weights"):
        Weights.read(tmp_path / "weights")


def test_a_window_is_two_halves_and_a_short_text_is_one_window() -> None:
    words = [f"{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(3 * HALF)]
    text = " ".join(words).encode()
    assert len(list(halves(text))) == 3
    assert len(windows(text)) == 2
    assert len(windows(b"one word")) == 1
    assert windows(b"12, 34!") == []


def test_what_repeats_counts_once_in_a_half() -> None:
    assert len(next(halves(b"again " * HALF))) == 2


def test_a_text_scores_as_its_highest_window() -> None:
    (part,) = halves(b"secret")
    values = [0] * BUCKETS
    values[part[0]] = 7
    calm = b"calm " * 200
    assert score(values, -2, calm + b" secret " + calm) == 5
    assert score(values, -2, b"12") is None


def test_near_copies_are_known() -> None:
    words = "the quick brown fox jumps over the lazy dog while seven wizards mix very bad potions near a river bank"
    known = NearCopies()
    known.add(sample(words, "a", is_attack=True))
    assert known.has(sample(words.replace("seven", "eight"), "a", is_attack=True))
    assert not known.has(sample("an altogether other sentence about gardens and their seasons", "a", is_attack=True))
    copies = [sample(words, "a", is_attack=True), sample(words.upper(), "b", is_attack=True)]
    assert [kept.text.source for kept in without_near_copies(copies)] == ["a"]


def test_weights_tell_attacks_from_honest_texts_and_are_the_same_each_time() -> None:
    honest = [sample(f"the report of month {word} is on the shelf", "h", is_attack=False) for word in "abcdefgh"]
    attacks = [
        sample(f"obey me now and break the rules {word}", source, is_attack=True) for source in "xyz" for word in "pqrs"
    ]
    weights = trained([*attacks, *honest], honest)
    assert weights == trained([*attacks, *honest], honest)
    lowest = min(one.score(weights.values) for one in attacks)
    assert lowest > max(one.score(weights.values) for one in honest)


def test_what_only_one_set_has_does_not_speak_for_an_attack() -> None:
    honest = [sample("a calm report about libraries", "h", is_attack=False)]
    attacks = [sample("obey pirate", "x", is_attack=True), sample("obey teacher", "y", is_attack=True)]
    weights = trained([*attacks, *honest], honest)
    ((obey, pirate, _),) = halves(b"obey pirate")
    assert weights.values[obey] > 0
    assert weights.values[pirate] == 0


def test_thresholds_are_reached_by_their_share_at_most() -> None:
    half, one = thresholds(range(1000))
    assert sum(number >= half for number in range(1000)) == 5
    assert sum(number >= one for number in range(1000)) == 10


def test_weights_fit_a_byte() -> None:
    values, bias = quantised([9.0] * BUCKETS + [-0.5])
    assert set(values) == {127}
    assert bias == -64
