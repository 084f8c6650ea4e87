"""`docs/check_links.py`: broken links, and texts that are not links."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.check_links import anchors, broken_links, missing_pages, problems

#: Separate from the names of pages, which would count as mentions in this file.
DOCS = "docs"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "b.md").write_text("# Two words, `code` and *more*\n\n## Twice\n\n## Twice\n")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("[a](b.md)", []),
        ("[a](b.md#two-words-code-and-more)", []),
        ("[a](b.md#twice-1)", []),
        ("[a](#here)\n\n# Here", []),
        ("[a](https://example.com/x.md)", []),
        ("![a](c.png)", [f"{DOCS}/a.md: no such file: c.png"]),
        ("[a](../b.md)", [f"{DOCS}/a.md: no such file: ../b.md"]),
        ("[a](b.md#three)", [f"{DOCS}/a.md: no such heading: b.md#three"]),
        ("[a](#gone)", [f"{DOCS}/a.md: no such heading: #gone"]),
        ("`[a](c.md)`", []),
        ("```\n[a](c.md)\n```", []),
        ("  ```\n  [a](c.md)\n  ```", []),
        ("| a ` b |\n| [a](c.md) ` |", [f"{DOCS}/a.md: no such file: c.md"]),
    ],
)
def test_a_link_needs_its_file_and_its_heading(root: Path, text: str, wrong: list[str]) -> None:
    (root / "docs" / "a.md").write_text(text)
    assert list(broken_links(root, f"{DOCS}/a.md")) == wrong


def test_a_comment_in_a_block_of_code_is_no_heading() -> None:
    assert anchors("# One\n\n```\n# two\n```\n") == {"one"}


@pytest.mark.parametrize(
    "name", [f"{DOCS}/gone.md", f"https://github.com/proofgate/proofgate/blob/main/{DOCS}/gone.md"]
)
def test_a_page_that_a_comment_or_an_address_names_has_to_exist(root: Path, name: str) -> None:
    (root / "code.py").write_text(f"# See {name}, {DOCS}/b.md and https://example.com/docs/c.md\n")
    assert list(missing_pages(root, "code.py")) == [f"code.py: no such page: {DOCS}/gone.md"]
    assert list(problems(root, ["code.py", f"{DOCS}/b.md", "removed.md"])) == [f"code.py: no such page: {DOCS}/gone.md"]


def test_a_file_that_is_no_text_names_nothing(root: Path) -> None:
    (root / "a.png").write_bytes(b"\xff\xfe " + f"{DOCS}/gone.md".encode())
    assert list(missing_pages(root, "a.png")) == []
