"""Times that people give, and the one that never goes back."""

from __future__ import annotations

import pytest

from proofgate import times

SECOND = 1_000_000_000
HOUR = 3600 * SECOND


@pytest.mark.parametrize("text", ["yesterday", "1960-01-01", "2026-13-01", ""])
def test_what_is_no_day_and_no_time_since_1970_is_refused(text: str) -> None:
    for read in (times.begin, times.end, times.last):
        with pytest.raises(ValueError, match=r"no day and no time|before 1970"):
            read(text)


def test_a_clock_that_is_set_back_counts_on_and_comes_back_to_the_systems() -> None:
    wall, monotonic = [1_000 * HOUR], [7]
    clock = times.SteadyClock(lambda: wall[0], lambda: monotonic[0])
    before = clock.micros()
    wall[0] -= 2 * HOUR
    for _ in range(8 * 3600 + 1):
        wall[0] += SECOND
        monotonic[0] += SECOND
        now = clock.micros()
        assert 750_000 <= now - before <= 1_000_000
        before = now
    assert before == wall[0] // 1000
    wall[0] += HOUR
    assert clock.micros() == wall[0] // 1000, "forward it follows at once"
