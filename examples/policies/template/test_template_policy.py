from proofgate.policy import Allow, Deny, PolicyRequest, PolicyText

from examples.policies.template.template_policy import policy


def request(text: str) -> PolicyRequest:
    return PolicyRequest("acme", "gpt", "/v1/chat/completions", (PolicyText(text),))


def test_only_a_text_that_is_too_long_is_denied() -> None:
    found = policy(longest=5).evaluate([request("12345"), request("123456")])
    assert found == [Allow(), Deny("too-long", "No text may have more than 5 characters.")]
