"""What Prometheus answers to a query that has scraped these expositions, by promtool: no server has to run."""

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
#: Minutes between two scrapes, and after the last one; queries look back for five at least.
_BETWEEN = 1


@dataclass
class Scrapes:
    """What one target exposed, scrape after scrape, and the labels that Prometheus adds to its series."""

    labels: Mapping[str, str]
    _taken: list[tuple[float, str]] = field(default_factory=list)

    def add(self, exposition: str) -> None:
        """One more scrape, taken now."""
        self._taken.append((time.time(), exposition))

    def series(self) -> list[dict[str, str]]:
        """Each series as promtool's tests write it: a value for each minute."""
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
        """When the last scrape was, from the first one."""
        return _BETWEEN * (len(self._taken) - 1)


def _since_start(name: str, value: str, start: float) -> str:
    """A value; of a time, what it is on a clock that began with the first scrape, as promtool's does."""
    return str(float(value) - start) if name.endswith("_timestamp_seconds") and float(value) else value


def asked(query: str, scrapes: Sequence[Scrapes]) -> str:
    """What a query answers at the time of the last scrape: each series with its value; empty if there is none.

    Raises ValueError with promtool's words for what is no query.
    """
    toolchain.ensure([toolchain.PROMTOOL])
    # No sample is expected, so what there is gets reported.
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
