"""Metrics of the build and of the process, with the names of Prometheus' own clients."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as classic

from proofgate import __version__, process_metrics


@pytest.mark.parametrize("is_open", [False, True])
def test_a_process_has_the_metrics_that_prometheus_clients_give_it(is_open: bool) -> None:
    text = process_metrics.render("worker", openmetrics=is_open)
    families = openmetrics(text + "# EOF\n") if is_open else classic(text)  # type: ignore[no-untyped-call]
    samples = {sample.name: sample for family in families for sample in family.samples}
    build = samples.pop("proofgate_build_info")
    assert (build.value, build.labels["component"], build.labels["version"]) == (1, "worker", __version__)
    values = {name: sample.value for name, sample in samples.items()}
    assert 0 < values["process_cpu_seconds_total"] <= sum(os.times()[:2]) + 0.1
    assert 0 < values["process_resident_memory_bytes"] < values["process_virtual_memory_bytes"]
    assert 0 < values["process_open_fds"] < values["process_max_fds"]
    assert 0 < values["process_start_time_seconds"] <= time.time()
    assert len(values) == 6


def test_where_proc_cannot_be_read_there_is_the_build_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_metrics, "_PROCESS", tmp_path)
    assert "process_" not in process_metrics.render("auditor")
