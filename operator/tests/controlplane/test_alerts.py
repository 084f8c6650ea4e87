"""The alerts and dashboards as Prometheus reads them. Needs promtool alone."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.controlplane.conftest import CHART
from tests.controlplane.server import binary

pytestmark = pytest.mark.controlplane

ALERTS = CHART / "files" / "alerts.yaml"
DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
PUBLISHED = "https://github.com/proofgate/proofgate/blob/main/docs/runbooks"
RUNBOOKS = CHART.parents[1] / "docs" / "runbooks"


def promtool(*arguments: str | Path) -> None:
    done = subprocess.run([binary("promtool"), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_alerts() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", ALERTS)


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    cases = (Path(__file__).parent / "fixtures" / "alerts.test.yaml").read_text()
    (tmp_path / "cases.yaml").write_text(cases.replace("[RULES]", f"[{ALERTS}]"))
    promtool("test", "rules", tmp_path / "cases.yaml")


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    groups = yaml.safe_load(ALERTS.read_text())["groups"]
    alerts = [alert for group in groups for alert in group["rules"]]
    for alert in alerts:
        assert alert["annotations"]["runbook_url"] == f"{PUBLISHED}/{alert['alert']}.md"
    assert {alert["alert"] for alert in alerts} == {path.stem for path in RUNBOOKS.glob("Proofgate*.md")}
    listed = re.findall(r"\[(Proofgate\w+)\]", (RUNBOOKS / "README.md").read_text())
    assert sorted(listed) == sorted(alert["alert"] for alert in alerts)


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


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_have_titles_and_do_not_overlap(path: Path) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(path.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (column, row)
            for column in range(place["x"], place["x"] + place["w"])
            for row in range(place["y"], place["y"] + place["h"])
        }
        assert panel["title"] and not cells & taken and place["x"] + place["w"] <= 24, panel["title"]
        taken |= cells
