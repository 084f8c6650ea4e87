from bench import ledger
from bench.report import ledger as ledger_page

PRINTED = """\
100000 records of 512 bytes 20µs apart, median of 5 runs (least to most), microseconds:
  append, no ledger thread: p50 0.63 (0.60 to 0.70), p99 2.12 (2.00 to 3.00)
  record, synced: p50 800.00 (700.00 to 900.50), p99 2000.00 (1500.00 to 9000.00)
recovery of admissions and completions: 0.40 M/s
"""


def test_the_cost_of_a_record_and_its_hand_off_are_told_apart() -> None:
    costs = ledger.of_one_record(PRINTED)
    assert costs == {
        "append_us": {
            "no ledger thread": {
                "p50": {"median": 0.63, "min": 0.6, "max": 0.7},
                "p99": {"median": 2.12, "min": 2.0, "max": 3.0},
            }
        },
        "record_us": {
            "synced": {
                "p50": {"median": 800.0, "min": 700.0, "max": 900.5},
                "p99": {"median": 2000.0, "min": 1500.0, "max": 9000.0},
            }
        },
    }


def test_the_page_has_a_row_for_each_with_its_spread_and_the_machine_that_they_were_measured_on() -> None:
    machine = {"processor": "one", "cores": 2, "load_before": 0.5}
    spread = {"median": 1.0, "min": 1.0, "max": 2.0}
    trees = {"engine": 7e6, "python": spread, "python_pool": spread}
    page = ledger_page.hot_path(
        {**ledger.of_one_record(PRINTED), "record_machine": machine, "rotation_stall_us": spread, "mmr_per_s": trees}
    )
    assert "one, 2 cores, load 0.5 before the run." in page
    assert "| append, no ledger thread | 0.63 (0.60 to 0.70) | 2.12 (2.00 to 3.00) |" in page
    assert "| hand-off, synced | 800.00 (700.00 to 900.50) | 2,000.00 (1,500.00 to 9,000.00) |" in page


def test_killed_and_sealed_logs_stand_beside_each_other_and_what_was_not_measured_is_a_dash() -> None:
    ended = {"sealed": {"100000": 0.14}, "killed": {"100000": 0.26}}
    result = {
        "machine": {"processor": "one", "cores": 2, "load_before": 0.5},
        "restart_s": ended,
        "restart_records_read": {"killed": {"100000": 34816}},
        "proof_ms": {"killed": {"100000": {"p50": 0.7, "p99": 4.7}}, "100000": {"p50": 9.0, "p99": 9.0}},
        "fsck_records_per_s": {"sealed": {"100000": 440427}},
        "append_per_s": {"100000": 692541},
    }
    *_, head, _, row = ledger_page.by_records(result).splitlines()
    cells = dict(zip(head.strip("| ").split(" | "), row.strip("| ").split(" | "), strict=True))
    assert (cells["restart, s, sealed"], cells["restart, s, killed"]) == ("0.14", "0.26")
    assert cells["find and prove, ms: p50, p99, killed"] == "0.7, 4.7"
    assert cells["find and prove, ms: p50, p99, sealed"] == "-"
    assert (cells["export of 100, ms, killed"], cells["fsck, records/s, sealed"]) == ("-", "440,427")
    assert cells["append and follow, records/s"] == "692,541"
