"""Keys that are words from examples are refused, and no example contains the digest of one."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ConfigDirectory

from proofgate.index.readers import ReadersError, parse_readers
from proofgate.well_known_keys import is_well_known

ROOT = Path(__file__).parents[2]
#: The files from which a reader copies.
PAGES = ("README.md", "docs", "examples", "charts", "setup", "gateway/README.md")
WORDS = ("test", "test2", "foo", "bar", "password", "changeme", "secret", "key", "api-key", "123456", "admin")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_digests_are_those_of_the_list() -> None:
    subprocess.run([sys.executable, str(ROOT / "docs/generate_well_known_keys.py"), "--check"], check=True)


@pytest.mark.parametrize("word", [*WORDS, "example", ""])
def test_a_word_is_known_in_each_form_that_people_hash(word: str) -> None:
    assert all(is_well_known(digest(text)) for text in (word, word.upper(), f"{word}\n"))


def test_a_key_that_was_made_is_not_known() -> None:
    assert not is_well_known(digest("0f3b6f1c9d2e4a5b8c7d6e5f4a3b2c1d"))
    assert not is_well_known("0" * 64)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("keyHashes: [{}]", "config_well_known_key"),
        ("keys: [{{hash: {}}}]", "config_well_known_key"),
    ],
)
def test_a_worker_takes_no_digest_of_a_word(config_directory: ConfigDirectory, given: str, code: str) -> None:
    config_directory.replace("keyHashesFile: globex-keys", given.format(digest("test")))
    [problem] = config_directory.problems().problems
    assert (problem.code, "openssl" in problem.message or "random" in problem.message) == (code, True)


def test_a_worker_takes_no_digest_of_a_word_from_a_file(config_directory: ConfigDirectory) -> None:
    config_directory.write("globex-keys", f"{digest('changeme')}\n")
    [problem] = config_directory.problems().problems
    assert "line 1 of globex-keys is the SHA-256 of a word" in problem.message


def test_an_auditor_takes_no_reader_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "readers"
    path.write_text(json.dumps({digest("test"): {"name": "officer", "all": True}}))
    with pytest.raises(ReadersError, match="a word from examples"):
        parse_readers(path)


def test_no_page_has_a_digest_of_a_word() -> None:
    files = [found for page in PAGES for found in (ROOT / page).rglob("*")] + [ROOT / page for page in PAGES]
    texts = {path: path.read_text(errors="replace") for path in files if path.is_file()}
    found = {
        str(path.relative_to(ROOT)): known
        for path, text in texts.items()
        if (known := [of for of in re.findall(r"\b[0-9a-f]{64}\b", text) if is_well_known(of)])
    }
    assert found == {}
