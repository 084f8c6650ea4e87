"""`docs/site_hooks.py`: the order of the site's pages, and links that leave docs/."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.site_hooks import KINDS, outside_links, pages

ROOT = Path(__file__).resolve().parents[2]
#: Separate from the names of pages, which would count as mentions in this file.
DOCS = "docs"


def test_pages_come_as_the_folders_index_links_to_them(tmp_path: Path) -> None:
    folder = tmp_path / "how-to"
    (folder / "more").mkdir(parents=True)
    (folder / "README.md").write_text("[c](c.md#x), [more](more/README.md), [a](a.md), [c](c.md)")
    for name in ("a", "b", "c", "more/d"):
        (folder / f"{name}.md").write_text("# Page\n")
    (folder / "more" / "README.md").write_text("# More\n")
    assert pages(tmp_path, folder) == [
        "how-to/README.md", "how-to/c.md", {"More": ["how-to/more/README.md", "how-to/more/d.md"]}, "how-to/a.md",
        "how-to/b.md",
    ]  # fmt: skip


def test_pages_stand_below_the_headings_of_the_index_if_it_has_several(tmp_path: Path) -> None:
    folder = tmp_path / "how-to"
    folder.mkdir()
    (folder / "README.md").write_text("# All\n\n[d](d.md)\n\n## One\n\n[b](b.md)\n\n## Two\n\n[a](a.md), [b](b.md)\n")
    for name in "abcd":
        (folder / f"{name}.md").write_text("# Page\n")
    assert pages(tmp_path, folder) == [
        "how-to/README.md", "how-to/d.md", {"One": ["how-to/b.md"]}, {"Two": ["how-to/a.md"]}, "how-to/c.md",
    ]  # fmt: skip


def test_every_page_of_the_documentation_is_below_a_tab() -> None:
    folders = {path.relative_to(ROOT / DOCS).parts[0] for path in (ROOT / DOCS).rglob("*.md")}
    assert folders == {*KINDS.values(), "README.md", "comparison.md"}


@pytest.mark.parametrize(
    ("link", "resolved"),
    [
        ("b.md#x", "b.md#x"),
        ("#x", "#x"),
        ("https://example.com", "https://example.com"),
        ("../../e2e/a.py", "https://github.com/proofgate/proofgate/blob/main/e2e/a.py"),
        ("../../gateway/README.md#x", "https://github.com/proofgate/proofgate/blob/main/gateway/README.md#x"),
        ("../../e2e", "https://github.com/proofgate/proofgate/tree/main/e2e"),
        ("../concepts", "../concepts/README.md"),
    ],
)
def test_a_link_that_leaves_the_folder_goes_to_the_repository(tmp_path: Path, link: str, resolved: str) -> None:
    for folder in ("docs/how-to", "docs/concepts", "e2e"):
        (tmp_path / folder).mkdir(parents=True)
    page = f"[a]({link})\n\n```\n[a]({link})\n```\n"
    assert outside_links(page, "how-to/a.md", tmp_path / DOCS) == f"[a]({resolved})\n\n```\n[a]({link})\n```\n"
