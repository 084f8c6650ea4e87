"""Records of tests: a line of JSON at the end of each test, so that an interrupted suite leaves its results so far."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal
from xml.etree import ElementTree

Outcome = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True)
class Test:
    """One test. Times are seconds: of the set-up of its fixtures, of the test, and of the tear-down."""

    __test__ = False

    name: str
    outcome: Outcome
    setup: float = 0.0
    call: float = 0.0
    teardown: float = 0.0
    message: str = ""

    @property
    def seconds(self) -> float:
        return self.setup + self.call + self.teardown


def append(record: Path, test: Test) -> None:
    """Adds a test to a record."""
    with record.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(test)) + "\n")


def read(record: Path) -> list[Test]:
    """The tests of a record, by name. If a test occurs twice, a failure counts. Empty if there is no record."""
    if not record.exists():
        return []
    found: dict[str, Test] = {}
    for line in record.read_text(encoding="utf-8").splitlines():
        test = Test(**json.loads(line))
        if test.name not in found or test.outcome == "failed":
            found[test.name] = test
    return list(found.values())


def write_junit(path: Path, suite: str, tests: Iterable[Test]) -> None:
    """Writes the tests in the form that CI systems read (JUnit's XML)."""
    listed = list(tests)
    failed = [test for test in listed if test.outcome == "failed"]
    counts = {"name": suite, "tests": str(len(listed)), "failures": str(len(failed))}
    root = ElementTree.Element("testsuite", counts)
    for test in listed:
        case = ElementTree.SubElement(root, "testcase", {"name": test.name, "time": f"{test.seconds:.3f}"})
        if test.outcome == "failed":
            ElementTree.SubElement(case, "failure").text = "".join(
                character if character >= " " or character in "\t\n" else "�" for character in test.message
            )
        elif test.outcome == "skipped":
            ElementTree.SubElement(case, "skipped")
    ElementTree.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)
