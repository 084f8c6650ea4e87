"""Tests of reading the output of the auditor's example as results."""

from bench import evidence

PRINTED = """\
400000 records of 512 bytes in one log, median of 5 runs (least to most), million records a second of one core:
  verified by the auditor: 1.49 (0.63 to 1.50)
  verified by the auditor, killed: 1.40 (1.30 to 1.45)
  read, checksums checked: 6.69 (6.63 to 6.86)
"""


def test_a_killed_log_stands_beside_a_sealed_one() -> None:
    assert evidence.verified(PRINTED) == {
        "verified by the auditor": {
            "sealed": {"median": 1.49, "min": 0.63, "max": 1.5},
            "killed": {"median": 1.4, "min": 1.3, "max": 1.45},
        },
        "read, checksums checked": {"median": 6.69, "min": 6.63, "max": 6.86},
    }
