"""Tests of reading the sets, of redacted files, and of refused sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.detection import gitleaks, recall, sessions
from bench.detection.judge import Found, parses, redact
from bench.detection.sets import trufflehog, yaml_rules
from bench.scoring.reference import Match

GO = """
func Acme() *config.Rule {
	// tps := []string{"a comment is no sample at all"}
	tps := utils.GenerateSampleSecrets("acme", secrets.NewSecret(`acme_[a-f]{4}`))
	tps = append(tps, `key = "acme_abcdef0123"`, "acme" + "_" + "0123456789ab")
	fps := []string{"acme_xxxxxxxxxxxxxxxx"}
	return utils.Validate(r, tps, fps)
}
"""


def found(rule: str, score: int, action: str = "flag") -> Found:
    match = Match(rule, 0, 1)
    return Found(frozenset({match}), {rule: score}, action == "block", frozenset())


def test_the_samples_of_a_rule_are_read_from_its_source(tmp_path: Path) -> None:
    file = tmp_path / "cmd" / "generate" / "config" / "rules" / "acme.go"
    file.parent.mkdir(parents=True)
    file.write_text(GO)
    texts = [text for _, _, text in gitleaks.samples(tmp_path, "tps")]
    assert any(text.startswith("export acme_TOKEN=acme_") for text in texts)
    assert texts[-2:] == ['key = "acme_abcdef0123"', "acme_0123456789ab"]
    assert [text for _, _, text in gitleaks.samples(tmp_path, "fps")] == ["acme_xxxxxxxxxxxxxxxx"]


def test_an_input_of_a_detector_names_what_is_wanted(tmp_path: Path) -> None:
    file = tmp_path / "pkg" / "detectors" / "acme" / "acme_test.go"
    file.parent.mkdir(parents=True)
    file.write_text(
        'const key = "k-1"\n{name: "a", input: fmt.Sprintf("token = \'%s\'", key), want: []string{key}},\n'
        '{name: "b", input: "nothing", want: []string{}},\n'
    )
    (example,) = trufflehog(tmp_path)
    assert (example.text, example.value) == ("token = 'k-1'", "k-1")


def test_rules_for_what_is_no_secret_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "rules" / "acme.yml"
    file.parent.mkdir()
    file.write_text(
        "rules:\n"
        "- {id: acme.1, examples: [one]}\n"
        "- {id: acme.2, examples: [two], visible: false}\n"
        "- {id: acme.3, examples: [three], categories: [identifier]}\n"
    )
    assert [example.text for example in yaml_rules(tmp_path)] == ["one"]


def test_of_matches_that_overlap_the_first_is_replaced() -> None:
    matches = [Match("b", 4, 9), Match("a", 2, 6)]
    assert redact("xöabcdefgh", [Match("a", 3, 5)]) == "xö[redacted:a]cdefgh"
    assert redact("0123456789", matches) == "01[redacted:a]6789"


@pytest.mark.parametrize(
    ("name", "whole", "broken"),
    [("a.json", '{"a": 1}', '{"a": [b]}'), ("a.py", "a = 1", "a = ["), ("a.yaml", "a: 1", "a: [")],
)
def test_a_file_is_read_as_its_name_says(name: str, whole: str, broken: str) -> None:
    assert parses(name, whole) is True
    assert parses(name, broken) is False
    assert parses("a.unknown", whole) is None


def test_a_session_can_be_refused_though_no_file_is() -> None:
    files = [sessions.File("acme", str(number), "text") for number in range(10)]
    judged = {file: found(f"rule-{int(file.path) % 2}", 60) for file in files}
    (row, *_) = sessions.refused(judged, 100, each=3)
    assert (row.size, row.sessions, row.by_a_file, row.by_the_sum) == (10, 3, 0, 3)


def test_vendored_files_are_not_read(tmp_path: Path) -> None:
    for path in ("acme/src/a.py", "acme/vendor/b.py", "acme/logo.png"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("a = 1")
    assert [file.path for file in sessions.files(tmp_path, 10)] == ["src/a.py"]


def test_recall_is_read_where_few_enough_honest_texts_are_touched() -> None:
    honest = [0] * 197 + [50, 60, 100]
    assert recall.threshold(honest, 0.005) == 100
    assert recall.threshold(honest, 0.01) == 60
    assert recall.recall([0, 50, 60, 100], honest, 0.01) == 0.5
    assert recall.recall([0, 1, 1], [0, 0, 1, 1], 0.01) is None
