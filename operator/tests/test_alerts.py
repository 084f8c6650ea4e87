"""The alerts and dashboards as files: runbooks, titles, and where panels stand."""

import json
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "proofgate-operator"
DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
PUBLISHED = "https://github.com/proofgate/proofgate/blob/main/docs/runbooks"
RUNBOOKS = ROOT / "docs" / "runbooks"


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


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    groups = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
    alerts = [alert for group in groups for alert in group["rules"]]
    for alert in alerts:
        assert alert["annotations"]["runbook_url"] == f"{PUBLISHED}/{alert['alert']}.md"
    assert {alert["alert"] for alert in alerts} == {path.stem for path in RUNBOOKS.glob("Proofgate*.md")}
    listed = re.findall(r"\[(Proofgate\w+)\]", (RUNBOOKS / "README.md").read_text())
    assert sorted(listed) == sorted(alert["alert"] for alert in alerts)
