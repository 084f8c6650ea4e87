"""The comparison of speeds, without running it."""

from __future__ import annotations

import pytest

from bench.scoring.rules import load_packs
from bench.scoring.soak import read_summary, seconds
from bench.scoring.speed import EVENT_BYTES, prose, read_figures, spread, with_matches

OUTPUT = """packs a,b: 2 rules, compiled in 3ms
clean prose: 100 events of 1024 bytes, 0 matching
  events/s        500000   (490000 to 510000)
  p50 ns            1900   (1800 to 2000)
  p99 ns            4000   (3900 to 4100)
1 % matching: 100 events of 1024 bytes, 1 matching
  events/s        400000   (390000 to 410000)
  p50 ns            2000   (1800 to 2000)
  p99 ns            9000   (3900 to 4100)
"""


def test_events_have_one_kilobyte_and_every_hundredth_holds_an_example() -> None:
    rules = load_packs()
    events = prose(201, seed=1)
    matching = with_matches(events, rules)
    assert {len(event.encode()) for event in events} == {EVENT_BYTES}
    assert [index for index in range(201) if events[index] != matching[index]] == [0, 100, 200]
    assert matching[100].endswith(rules[1].matching[0])


def test_the_figures_of_the_engine_are_read() -> None:
    figures = read_figures(OUTPUT)
    assert figures["clean prose"] == {"events_per_second": 500000, "p50_us": 1.9, "p99_us": 4.0}
    assert figures["1 % matching"]["p99_us"] == 9.0


def test_a_spread_is_median_and_extremes() -> None:
    assert spread([3, 1, 2]) == {"median": 2, "min": 1, "max": 3}


def test_the_summary_of_a_soak_is_read() -> None:
    output = """packs a: 2 rules, compiled in 3ms
soak: 700000 events in 10.1 s (69435/s), 700 panics, every other event as without them
resident: 77616 KiB first, 77712 KiB last, slope -0.02 KiB/s over 32 samples
"""
    assert read_summary(output) == {
        "seconds": 10,
        "events": 700_000,
        "panics": 700,
        "panic_every": 1000,
        "resident_kib": {"first": 77616, "last": 77712},
        "slope_kib_per_second": -0.02,
    }


def test_a_duration_has_a_unit() -> None:
    assert [seconds(duration) for duration in ("90s", "30m", "1h")] == [90, 1800, 3600]
    for bad in ("30", "m", "0m", "1d", "-1s"):
        with pytest.raises(ValueError, match="no duration"):
            seconds(bad)
