"""The blocks of commands and queries in runbooks, with the labels of their alerts filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "runbooks"
ALERTS = ROOT / "charts" / "proofgate-operator" / "files" / "alerts.yaml"
#: Labels whose variables have shorter names. Any other label's variable is its name in capitals.
SHORT = {"namespace": "NS", "gateway": "GW"}
#: The labels that Prometheus adds to every series of a gateway's pod
#: (operator/src/proofgate_operator/build/monitoring.py).
OF_A_POD = {"namespace", "gateway", "pod"}
OF_A_VOLUME = {"namespace", "persistentvolumeclaim"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a runbook."""

    alert: str
    language: str
    text: str

    @property
    def variables(self) -> set[str]:
        """The variables that the block reads but does not set."""
        read = set(re.findall(r"\$\{?([A-Z]\w*)", self.text))
        return read - set(re.findall(r"^([A-Z]\w*)=", self.text, re.MULTILINE))

    def filled(self, values: dict[str, str]) -> str:
        """The text with the variables replaced by values."""
        return re.sub(r"\$([A-Z]\w*)", lambda found: values.get(found[1], found[0]), self.text)


def alerts() -> dict[str, dict[str, Any]]:
    """The chart's alerts by their names."""
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"] if "alert" in rule}


def blocks() -> Iterator[Block]:
    """Every block of every alert's page."""
    for path in sorted(FOLDER.glob("Proofgate*.md")):
        for language, text in re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE):
            yield Block(path.stem, language, text)


def labels_of(rule: dict[str, Any]) -> set[str]:
    """The labels that an alert has in every case."""
    expression = rule["expr"]
    if "proofgate:" in expression:
        return {"namespace", "gateway"}
    grouped = [set(re.split(r"[\s,]+", names.strip())) for names in re.findall(r"\bby\s*\(([^)]*)\)", expression)]
    if grouped:
        # A comparison of two sums has the labels of both.
        return set.intersection(*grouped) - {"le"}
    if re.match(r"\s*(absent|sum|count)\(", expression):
        return set()
    return OF_A_VOLUME if "kubelet_volume" in expression else OF_A_POD


def variable(label: str) -> str:
    """The variable that stands for a label in runbooks."""
    return SHORT.get(label, label.upper())


#: The alerts whose failure no test causes, each with the reason.
NOT_MADE = {
    "ProofgateAuditorLags": "its command needs the metrics API, which the cluster of the tests does not have",
    "ProofgateHoldEnded": "a hold ends after 15 minutes; the operator's tests move its clock (test_may_not_look.py)",
    "ProofgateLedgerNotSynced": "a sync that neither ends nor fails needs a device that hangs",
    "ProofgateOperatorIsSlow": "its query is about the API server; a slow one is a cluster apart (make test-unkind)",
    "ProofgateWorkerPanics": "no request is known that makes a worker panic",
}


def queries(alert: str, labels: dict[str, str]) -> list[str]:
    """The queries of an alert's page, with its labels in them."""
    values = {variable(label): value for label, value in labels.items()}
    asked = [block for block in blocks() if block.alert == alert and block.language == "promql"]
    return [query for block in asked for query in block.filled(values).splitlines()]
