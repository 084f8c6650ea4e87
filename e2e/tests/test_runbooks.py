"""The runbooks' commands on a cluster, with the labels that the alert would have there."""

from __future__ import annotations

import subprocess

import pytest

from e2e.kubernetes import Namespace, environment
from e2e.runbooks import Block, alerts, blocks, labels_of, variable

#: What these pages are about is not there: an auditor, a retention job, an internal certificate, a provider of a cloud.
ABSENT = ("auditor", "retention", "openssl", "s3://", "export-leaves")
RUN = [
    block
    for block in blocks()
    if block.language == "sh"
    and labels_of(alerts()[block.alert]) <= {"namespace", "gateway", "pod", "provider"}
    and not any(word in block.text for word in ABSENT)
    # The operator's pods are in another namespace than the gateway's.
    and "Operator" not in block.alert
]


@pytest.mark.parametrize("block", RUN, ids=lambda block: block.alert)
def test_the_commands_of_a_runbook_run_with_the_labels_of_its_alert(
    namespace: Namespace, gateway: str, block: Block
) -> None:
    values = {"namespace": namespace.name, "gateway": gateway, "pod": f"{gateway}-worker-0", "provider": "any"}
    assigned = {variable(label): value for label, value in values.items()}
    done = subprocess.run(
        ["bash", "-c", block.text],
        env={**environment(), **assigned},
        capture_output=True,
        text=True,
        timeout=120,
    )
    # A search that finds nothing ends with 1: the gateway is well.
    assert done.returncode in (0, 1), done.stderr
    assert "rror" not in done.stderr, done.stderr


def test_there_are_commands_to_run() -> None:
    assert len(RUN) > 10
