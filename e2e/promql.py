"""Answers to PromQL queries over scraped expositions, by promtool, without a running server."""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from e2e.cluster import toolchain

_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)", re.MULTILINE)
_GOT = re.compile(r"^\s*got:\s*(.*)$", re.MULTILINE)
#: Minutes between two scrapes, and after the last one. Queries look back at least five minutes.
_BETWEEN = 1


@dataclass
class Scrapes:
    """The expositions of one target, scrape by scrape, and the labels that Prometheus adds to its series."""

    labels: Mapping[str, str]
    _taken: list[tuple[float, str]] = field(default_factory=list)

    def add(self, exposition: str) -> None:
        """Adds a scrape that is taken now."""
        self._taken.append((time.time(), exposition))

    def series(self) -> list[dict[str, str]]:
        """Each series in the format of promtool's tests: a value for each minute."""
        added = ",".join(f'{name}="{value}"' for name, value in self.labels.items())
        values: dict[str, list[str]] = {}
        for number, (taken, exposition) in enumerate(self._taken):
            for name, labels, value in _SAMPLE.findall(exposition):
                key = f"{name}{{{','.join(part for part in (added, labels) if part)}}}"
                of_series = values.setdefault(key, ["_"] * len(self._taken))
                of_series[number] = _since_start(name, value, taken - 60 * number * _BETWEEN)
        return [{"series": series, "values": " ".join(told)} for series, told in values.items()]

    @property
    def minutes(self) -> int:
        """Minutes from the first scrape to the last."""
        return _BETWEEN * (len(self._taken) - 1)


def _since_start(name: str, value: str, start: float) -> str:
    """A value. A time is converted to a clock that starts at the first scrape, like promtool's."""
    return str(float(value) - start) if name.endswith("_timestamp_seconds") and float(value) else value


def asked(query: str, scrapes: Sequence[Scrapes]) -> str:
    """The answer to a query at the time of the last scrape: each series with its value; empty if there is none.

    Raises ValueError with promtool's error message for an invalid query.
    """
    toolchain.ensure([toolchain.PROMTOOL])
    # The test expects no sample, so promtool reports the existing ones.
    test = {"expr": query, "eval_time": f"{max(one.minutes for one in scrapes)}m", "exp_samples": []}
    series = [found for one in scrapes for found in one.series()]
    case = {"interval": f"{_BETWEEN}m", "input_series": series, "promql_expr_test": [test]}
    with tempfile.TemporaryDirectory(prefix="proofgate-promql-") as folder:
        path = Path(folder) / "case.yaml"
        path.write_text(yaml.safe_dump({"rule_files": [], "tests": [case]}))
        command: list[str | Path] = [toolchain.binary("promtool"), "test", "rules", path]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return ""
    found = _GOT.search(done.stdout + done.stderr)
    if found is None:
        raise ValueError(f"{query}\n{done.stdout}{done.stderr}")
    return found[1]
