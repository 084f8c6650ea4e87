import pytest
from proofgate.policy import Allow, PolicyRequest, PolicyText, Replace

from examples.policies.masking.masking_policy import policy


def masked(*texts: str) -> list[str]:
    """Return the texts with the policy's replacements."""
    request = PolicyRequest("acme", "gpt", "/v1/chat/completions", tuple(PolicyText(text) for text in texts))
    [verdict] = policy().evaluate([request])
    found = list(texts)
    if isinstance(verdict, Replace):
        assert verdict.reversible
        for part in reversed(verdict.replacements):
            text = found[part.text]
            found[part.text] = text[: part.start] + part.by + text[part.end :]
    else:
        assert verdict == Allow()
    return found


def test_the_same_value_has_the_same_mask_in_all_of_a_request() -> None:
    assert masked("from ann@a.example to bob@b.example", "ann@a.example wrote") == [
        "from [EMAIL_1] to [EMAIL_2]",
        "[EMAIL_1] wrote",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pay DE89 3704 0044 0532 0130 00 today", "pay [IBAN_1] today"),
        ("call +49 30 901820 now", "call [PHONE_1] now"),
        ("a 😀 ann@a.example", "a 😀 [EMAIL_1]"),
        ("1 + 49 is 50, see @home", "1 + 49 is 50, see @home"),
    ],
)
def test_what_is_personal_is_masked_and_what_is_not_stays(text: str, expected: str) -> None:
    assert masked(text) == [expected]


def test_a_kind_that_does_not_exist_is_refused_when_the_policy_is_made() -> None:
    with pytest.raises(ValueError, match="no kind FAX"):
        policy(kinds=["FAX"])
