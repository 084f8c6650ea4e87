"""The features of a text for the linear score: hashed words and pairs of words, in windows of 64 words.

The same as `rust-core/crates/policy/src/linear.rs`, in integers only, so that both give equal scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

BUCKET_BITS = 18
BUCKETS = 1 << BUCKET_BITS
#: Words of half a window. A window is two halves, and begins where a half does.
HALF = 32
#: Maximum bytes of a half; no word begins after them.
LONGEST_HALF = 4096
#: Number of remembered buckets, with which repeated buckets are left out.
SLOTS = 256

#: Runs of letters, of which a long one is several words; every byte of a character that is not ASCII is a letter.
_WORD = re.compile(rb"[A-Za-z\x80-\xff]{1,64}")
_MASK = 0xFFFF_FFFF
_FNV_OFFSET, _FNV_PRIME = 0x811C_9DC5, 0x0100_0193
_PAIR, _SPREAD = 0x85EB_CA6B, 0x9E37_79B1

_hashes: dict[bytes, int] = {}


def word_hash(word: bytes) -> int:
    """FNV-1a (32 bits) of a word in lower case."""
    known = _hashes.get(word)
    if known is None:
        known = _FNV_OFFSET
        for byte in word.lower():
            known = ((known ^ byte) * _FNV_PRIME) & _MASK
        _hashes[word] = known
    return known


def bucket(number: int) -> int:
    """The bucket of a hash: the upper bits of a product, which depend on all of it."""
    return ((number * _SPREAD) & _MASK) >> (32 - BUCKET_BITS)


def halves(text: bytes) -> Iterator[list[int]]:
    """The buckets of every 32 words of a text, in order; the last may have fewer words.

    A pair belongs to its second word, and the first word of a text has none. A bucket that came before in a half is
    left out, as far as its slot still holds it: tables and lists repeat themselves.
    """
    part: list[int] = []
    slots: dict[int, int] = {}
    before = count = start = 0
    for match in _WORD.finditer(text):
        if count == HALF or (count and match.start() - start >= LONGEST_HALF):
            yield part
            part, slots, count = [], {}, 0
        if not count:
            start = match.start()
        here = word_hash(match.group())
        for number in (bucket(here), bucket(((before * _PAIR) & _MASK) ^ here)):
            if slots.get(number % SLOTS) != number:
                slots[number % SLOTS] = number
                part.append(number)
        before = here
        count += 1
    if count:
        yield part


def windows(text: bytes) -> list[list[int]]:
    """The buckets of every window of a text: of two halves that follow each other, or of all if there is only one."""
    parts = list(halves(text))
    if len(parts) < 2:
        return parts
    return [first + second for first, second in pairwise(parts)]


def score(weights: Sequence[int], bias: int, text: bytes) -> int | None:
    """The highest score of a window; None for a text without words."""
    sums = [sum(weights[number] for number in part) for part in halves(text)]
    if len(sums) > 1:
        sums = [first + second for first, second in pairwise(sums)]
    return bias + max(sums) if sums else None
