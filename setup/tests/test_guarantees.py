"""`docs/check_test_names.py`: the names that it accepts as tests, and the rows of a page that it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from docs.check_test_names import GUARANTEES, Row, is_test, missing_tests, rows, suite_of, wrong_rows
from suites.catalogue import BY_NAME

ROOT = Path(__file__).resolve().parents[2]
FILE = "gateway/tests/test_a.py"
SUITES = frozenset({"gateway"})


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    path.write_text("def test_one() -> None: ...\n\n\nasync def test_two() -> None: ...\n\n\ndef one() -> None: ...\n")
    return tmp_path


def page(*lines: str) -> str:
    return "\n".join(
        ["# Page", "| other | table |", "", "## Part", "| promise | test | suite |", "|---|---|---|", *lines]
    )


def row(promise: str, test: str, file: str = FILE, suite: str = "gateway") -> str:
    return f"| {promise} | [`{test}`](../../{file}) | {suite} |"


def test_the_page_is_right_and_all_named_tests_are_there() -> None:
    assert list(wrong_rows(GUARANTEES.read_text(), ROOT, frozenset(BY_NAME))) == []
    assert list(missing_tests(ROOT)) == []


def test_a_python_test_is_a_function_of_its_name(root: Path) -> None:
    path = root / FILE
    assert is_test(path, "test_one") and is_test(path, "test_two")
    assert not is_test(path, "test_on") and not is_test(root / "absent.py", "test_one")


def test_a_rust_test_has_an_attribute(tmp_path: Path) -> None:
    path = tmp_path / "a.rs"
    path.write_text(
        "#[test]\nfn plain() {}\n"
        '#[tokio::test(flavor = "current_thread")]\n#[ignore]\n// Why.\nasync fn waits() {}\n'
        "proptest! {\n    #[test]\n    fn holds(n in 0..9) {}\n}\n"
        "fn plain_helper() {}\n#[test]\nfn other() {}\nfn helper() {}\n"
    )
    assert [is_test(path, name) for name in ("plain", "waits", "holds")] == [True] * 3
    assert [is_test(path, name) for name in ("plain_helper", "helper", "absent")] == [False] * 3


def test_the_longest_folder_that_fits_names_the_suite() -> None:
    assert suite_of("operator/tests/test_a.py") == "operator"
    assert suite_of("operator/tests/controlplane/test_a.py") == "control-plane"
    assert suite_of("docs/a.py") is None


def test_rows_are_read_and_what_is_none_is_named() -> None:
    found = list(rows(page(row("It holds.", "test_one"), "| It holds. | test_one |", row("word " * 21, "test_one"))))
    assert found[0] == Row("It holds.", "test_one", FILE, "gateway")
    assert [str(one).split(":")[0] for one in found[1:]] == [
        "no row of a promise, a link to one test, and a suite",
        "more than 20 words",
    ]


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ([row("It holds.", "test_one"), row("That too.", "test_two")], []),
        ([], ["no promise at all"]),
        ([row("It holds.", "one_more")], [f"no test one_more in {FILE}"]),
        ([row("It holds.", "test_one", suite="rust")], [f"{FILE} is run by the suite gateway, and not by rust"]),
        ([row("It holds.", "test_one"), row("it holds.", "test_two")], ["2 times: it holds."]),
        (
            [row("It holds.", "test_one"), row("That too.", "test_one")],
            [f"2 promises have the test test_one of {FILE}"],
        ),
    ],
)
def test_what_is_wrong_with_a_page_is_named(root: Path, lines: list[str], wrong: list[str]) -> None:
    assert list(wrong_rows(page(*lines), root, SUITES | {"rust"})) == wrong


def test_a_suite_that_make_test_does_not_run_is_named(root: Path) -> None:
    assert list(wrong_rows(page(row("It holds.", "test_one")), root, frozenset())) == [
        "make test runs no suite gateway"
    ]
