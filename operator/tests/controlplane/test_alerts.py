"""The alerts and dashboards as Prometheus reads them. The tests need only promtool."""

import json
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.controlplane.conftest import CHART
from tests.controlplane.server import binary

pytestmark = pytest.mark.controlplane

ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run([binary("promtool"), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_alerts() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    cases = (Path(__file__).parent / "fixtures" / "alerts.test.yaml").read_text()
    (tmp_path / "cases.yaml").write_text(cases.replace("[RULES]", f"[{ALERTS}]"))
    promtool("test", "rules", tmp_path / "cases.yaml")


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_prometheus_understands_every_panel(path: Path, tmp_path: Path) -> None:
    panels = [panel for panel in json.loads(path.read_text())["panels"] if "targets" in panel]
    expressions = [target["expr"] for panel in panels for target in panel["targets"]]
    assert expressions
    rules = [
        {"record": f"panel:{number}", "expr": expression.replace("$__rate_interval", "5m")}
        for number, expression in enumerate(expressions)
    ]
    (tmp_path / "panels.yaml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    promtool("check", "rules", tmp_path / "panels.yaml")
