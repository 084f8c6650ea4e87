"""The alerts and dashboards as files: runbooks, titles, thresholds, names, and positions of panels."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts" / "proofgate-operator"
DASHBOARDS = sorted((CHART / "dashboards").glob("*.json"))
PUBLISHED = "https://github.com/proofgate/proofgate/blob/main/docs/runbooks"
RUNBOOKS = ROOT / "docs" / "runbooks"
REFERENCE = ROOT / "docs" / "reference"
HOW_TO = ROOT / "docs" / "how-to"
ALERTS = CHART / "files" / "alerts.yaml"


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


def panels_of(*kinds: str) -> list[dict[str, Any]]:
    """Return the panels of these types in all dashboards."""
    panels = [panel for path in DASHBOARDS for panel in json.loads(path.read_text())["panels"]]
    return [panel for panel in panels if panel["type"] in kinds]


def colour(panel: dict[str, Any], value: float) -> str:
    """Return the color in which Grafana shows a value, by the panel's thresholds."""
    defaults = panel["fieldConfig"]["defaults"]
    assert defaults["color"] == {"mode": "thresholds"} and defaults["thresholds"]["mode"] == "absolute"
    first, *others = defaults["thresholds"]["steps"]
    assert first["value"] is None
    shown: str = first["color"]
    for step in others:
        shown = step["color"] if value >= step["value"] else shown
    return shown


def test_every_panel_of_one_value_has_thresholds_of_its_own() -> None:
    # Without thresholds, Grafana shows 0 to 79 green and 80 or more red, for any metric.
    for panel in panels_of("stat", "gauge", "bargauge"):
        assert colour(panel, 0), panel["title"]


@pytest.mark.parametrize(
    ("title", "good", "bad"),
    [
        ("Ready", 1, 0),
        ("Workers that are ready", 2, 0),
        ("Leaders", 1, 0),
        ("Leaders", 1, 2),
        ("Gateways that are not Ready", 0, 1),
        ("Records not on disk yet", 3, 50_000),
        ("Availability, last 3 days", 0.999, 0.9),
        ("Budgets and limits used", 0.5, 1.0),
        ("Shared limits used", 0.5, 1.0),
    ],
)
def test_bad_values_are_red_and_good_ones_green(title: str, good: float, bad: float) -> None:
    (panel,) = [panel for panel in panels_of("stat", "bargauge") if panel["title"] == title]
    assert (colour(panel, good), colour(panel, bad)) == ("green", "red")


def test_a_busy_gateway_is_not_shown_as_a_broken_one() -> None:
    for title in ("Exchanges", "In flight"):
        (panel,) = [panel for panel in panels_of("stat") if panel["title"] == title]
        assert colour(panel, 1_000_000) == colour(panel, 0) == "blue"


def test_every_metric_of_alerts_and_dashboards_is_documented() -> None:
    pages = [*REFERENCE.glob("*.md"), *HOW_TO.glob("*.md")]
    documented = "".join(path.read_text() for path in pages)
    text = "".join(path.read_text() for path in (ALERTS, *DASHBOARDS))
    asked = {re.sub("_(bucket|sum|count)$", "", name) for name in re.findall(r"(?<!:)\bproofgate_\w+", text)}
    assert {name for name in asked if not is_named(name, documented)} == set()


def is_named(metric: str, text: str) -> bool:
    """Return whether a text names a metric as code, in full or by its suffix, as in `proofgate_a_b`, `_c`."""
    ends = [metric, *(metric[place.start() :] for place in re.finditer("_", metric))]
    return any(re.search(rf"`{end}\b(?!_)", text) for end in ends)


def test_every_recorded_series_that_is_asked_for_is_recorded() -> None:
    text = "".join(path.read_text() for path in (ALERTS, *DASHBOARDS))
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    assert set(re.findall(r"\bproofgate:[\w:]+", text)) == recorded


def rules() -> list[dict[str, Any]]:
    """Return all rules of the chart, alerts and recording rules."""
    return [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]


def test_every_alert_has_a_runbook_and_every_runbook_an_alert() -> None:
    alerts = [rule for rule in rules() if "alert" in rule]
    for alert in alerts:
        assert alert["annotations"]["runbook_url"] == f"{PUBLISHED}/{alert['alert']}.md"
    assert {alert["alert"] for alert in alerts} == {path.stem for path in RUNBOOKS.glob("Proofgate*.md")}
    listed = re.findall(r"\[(Proofgate\w+)\]", (RUNBOOKS / "README.md").read_text())
    assert sorted(listed) == sorted(alert["alert"] for alert in alerts)
