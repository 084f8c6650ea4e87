"""The classifier's features of a text: which of 512 buckets its words and pairs of words fall into."""

from __future__ import annotations

import itertools
import re
import zlib

BUCKETS = 512
#: The number of words after which a text is cut, to limit the time for a batch.
MOST_WORDS = 2000

_WORD = re.compile(r"[a-z']+")


def features(text: str) -> set[int]:
    """The buckets of a text's words and pairs of words."""
    words = _WORD.findall(text.lower())[:MOST_WORDS]
    pairs = [f"{first} {second}" for first, second in itertools.pairwise(words)]
    return {zlib.crc32(part.encode()) % BUCKETS for part in (*words, *pairs)}
