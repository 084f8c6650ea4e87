"""`setup/check-words`: the checked text, the words, and the lines of a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from setup.words import Words, all_files, changed_lines, default_base

LIST = """[words]
"tells?|told" = "report"
"in the place of" = "instead of"

[openings]
'(?:^|[.:;] )Of (?:a|the|each) ' = "begin with the subject"
"""
WORDS = Words(LIST, "# A comment.\nold/* told   # stays\nquoted.md *\n")


def found(path: str, text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.word) for finding in WORDS.findings(path, text)]


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a.md", "The log tells it.\n\nTold again", [(1, "tells"), (3, "Told")]),
        ("a.md", "It is in the place of x", [(1, "in the place of")]),
        ("a.md", "Retold, `told`, [link](told.md)", []),
        ("a.md", "```\ntold\n```\ntold", [(4, "told")]),
        ("a.md", "Of the logs one ends. Of a log. List of the logs", [(1, "Of a"), (1, "Of the")]),
        (
            "a.py",
            '"""Is told."""\ntold = 1  # told\nprint("was told")\nx = "told"\n',
            [(1, "told"), (2, "told"), (3, "told")],
        ),
        ("a.py", "not ( Python", []),
        ("a.rs", '/// Is told.\nlet told = "is told"; // told\nfn told() {}', [(1, "told"), (2, "told"), (2, "told")]),
        ("a.js", 'get("https://told.example/ x")', []),
        ("a.yaml", "told: x  # told", [(1, "told")]),
        ("tool", "#!/usr/bin/env bash\n# told\ntold", [(2, "told")]),
        ("tool", "#!/usr/bin/env python3\n# told\ntold\n", [(2, "told")]),
        ("a.bin", "told", []),
        ("old/a.md", "told tells", [(1, "tells")]),
        ("quoted.md", "told tells", []),
    ],
)
def test_what_people_read_is_checked_and_code_is_not(path: str, text: str, expected: list[tuple[int, str]]) -> None:
    assert sorted(found(path, text)) == expected


def test_a_finding_says_where_it_is_and_what_to_write() -> None:
    [finding] = WORDS.findings("a.md", "x\nis told\n")
    assert str(finding) == "a.md:2: “told”: report"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", *identity, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    (tmp_path / "a.md").write_text("told\n\nb\n")
    git("add", ".")
    git("commit", "-m", "one")
    (tmp_path / "a.md").write_text("told\n\nb told\nc\n")
    git("commit", "-am", "two")
    return tmp_path


def test_only_changed_lines_and_new_files_are_checked(repository: Path) -> None:
    assert default_base(repository) == "HEAD~1"
    assert changed_lines(repository, "HEAD~1") == {"a.md": {3, 4}}
    (repository / "new.md").write_text("told\n")
    assert changed_lines(repository, "HEAD") == {"new.md": None}
    assert all_files(repository) == {"a.md": None}


def test_a_branch_is_checked_from_where_it_left_the_main_branch(repository: Path) -> None:
    subprocess.run(["git", "update-ref", "refs/remotes/origin/main", "HEAD~1"], cwd=repository, check=True)
    first = subprocess.run(["git", "rev-parse", "HEAD~1"], cwd=repository, check=True, capture_output=True, text=True)
    assert default_base(repository) == first.stdout.strip()


def test_an_unknown_revision_is_reported(repository: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        changed_lines(repository, "nowhere")


def test_the_list_of_this_repository_can_be_read_and_finds_nothing_in_plain_text() -> None:
    words = Words.of_this_repository()
    assert list(words.findings("a.md", "Each worker reports its state. Who can verify it? Anyone with the key.")) == []
    assert [finding.word for finding in words.findings("a.md", "Whoever mends it is told so")] == [
        "told",
        "mends",
        "Whoever",
    ]
