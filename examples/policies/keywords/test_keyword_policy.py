import os
from pathlib import Path

import pytest
from proofgate.policy import Allow, Deny, Policy, PolicyRequest, PolicyText

from examples.policies.keywords.keyword_policy import policy

WORDS = Path(__file__).with_name("words.txt")


def denied(policy: Policy, text: str) -> bool:
    request = PolicyRequest("acme", "gpt", "/v1/chat/completions", (PolicyText(text),))
    [verdict] = policy.evaluate([request])
    assert isinstance(verdict, (Allow, Deny))
    return isinstance(verdict, Deny)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("when is BlueBird?", True),
        ("the Project Tulip plan", True),
        ("bluebirds sing", False),
        ("the next release", False),
        ("", False),
    ],
)
def test_whole_words_of_the_list_are_denied(text: str, expected: bool) -> None:
    assert denied(policy(str(WORDS)), text) is expected


def test_another_list_in_the_place_of_the_first_holds_from_the_next_batch_on(tmp_path: Path) -> None:
    # As the kubelet does it: it replaces a link.
    for name in ("first", "second"):
        (tmp_path / name).write_text(f"{name}word\n")
    link = tmp_path / "words.txt"
    link.symlink_to("first")
    keywords = policy(str(link))
    assert [denied(keywords, word) for word in ("firstword", "secondword")] == [True, False]
    (tmp_path / "next").symlink_to("second")
    os.replace(tmp_path / "next", link)
    assert [denied(keywords, word) for word in ("firstword", "secondword")] == [False, True]


def test_an_empty_list_denies_nothing_and_a_missing_one_is_no_verdict(tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("# nothing\n")
    keywords = policy(str(words))
    assert not denied(keywords, "anything")
    words.unlink()
    with pytest.raises(FileNotFoundError):
        denied(keywords, "anything")
