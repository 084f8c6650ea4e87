"""Times in arguments, and a clock that never goes back."""

from __future__ import annotations

import pytest

from proofgate import times

SECOND = 1_000_000_000
HOUR = 3600 * SECOND


@pytest.mark.parametrize("text", ["yesterday", "1960-01-01", "2026-13-01", ""])
def test_what_is_no_day_and_no_time_since_1970_is_refused(text: str) -> None:
    for read in (times.parse_start, times.parse_exclusive_end, times.parse_inclusive_end):
        with pytest.raises(ValueError, match=r"not a date or time|before 1970"):
            read(text)


class Clocks:
    """A system clock and a monotonic clock that the test sets, in nanoseconds."""

    def __init__(self) -> None:
        self.wall, self.monotonic = 200_000 * HOUR, 7
        self.steady = times.SteadyClock(lambda: self.wall, lambda: self.monotonic)

    def go_on(self, by: int = SECOND) -> None:
        self.wall, self.monotonic = self.wall + by, self.monotonic + by


def test_a_clock_that_is_set_back_counts_on_and_comes_back_to_the_systems() -> None:
    clocks = Clocks()
    before = clocks.steady.micros()
    clocks.wall -= HOUR
    for _ in range(4 * 3600 + 1):
        clocks.go_on()
        now = clocks.steady.micros()
        assert 750_000 <= now - before <= 1_000_000
        before = now
    assert before == clocks.wall // 1000
    clocks.wall += HOUR
    assert clocks.steady.micros() == clocks.wall // 1000, (
        "a clock that is set forward is followed immediately"
    )


@pytest.mark.parametrize("back", [HOUR + SECOND, 2 * HOUR, 24 * HOUR, 744 * HOUR, 8760 * HOUR, 87_600 * HOUR])
def test_a_clock_that_is_set_back_by_more_than_an_hour_is_followed(back: int) -> None:
    clocks = Clocks()
    clocks.wall -= back
    for _ in range(3):
        clocks.go_on()
        assert clocks.steady.micros() == clocks.wall // 1000


@pytest.mark.parametrize("step", [SECOND, -SECOND, HOUR, -HOUR, 87_600 * HOUR, -87_600 * HOUR])
def test_a_step_is_told_once_with_where_it_went(step: int) -> None:
    clocks = Clocks()
    clocks.go_on()
    assert clocks.steady.read()[1] is None
    clocks.go_on()
    from_here = clocks.wall
    clocks.wall += step
    told = clocks.steady.read()[1]
    assert told == times.ClockStep(from_here // 1000, clocks.wall // 1000)
    assert told.seconds == step / SECOND
    clocks.go_on()
    assert clocks.steady.read()[1] is None
    assert (clocks.steady.back, clocks.steady.ahead) == ((1, 0) if step < 0 else (0, 1))


def test_what_keeps_a_clock_right_is_no_step() -> None:
    clocks = Clocks()
    for passed in (SECOND, 60 * SECOND, 24 * HOUR):
        clocks.go_on(passed)
        clocks.wall -= passed // 2000
        assert clocks.steady.read()[1] is None
