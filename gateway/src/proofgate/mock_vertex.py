"""The mock upstream's Vertex AI: models of Google and Anthropic below a project and a location."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from proofgate.mock_answers import ClientError, MockExchange
from proofgate.mock_dialects import MessagesExchange, TokenCount
from proofgate.mock_google import GeneratedContent, GeneratedTokens

#: Accepted versions: the one in Google's reference, and the one that Anthropic's client for Vertex AI sends
#: since its version 2.
_VERSIONS = ("vertex-2023-10-16", "2026-10-21")
_PATH = re.compile(
    r"/v1/projects/[^/]+/locations/[^/]+/publishers/(?:(google)|anthropic)/models/([^/:]+):(\w+)"
)


class RawPrediction(MessagesExchange):
    """`rawPredict` and `streamRawPredict`: Anthropic's Messages API with the model in the path."""

    def model_and_stream(self, request: dict[str, Any], target: str) -> tuple[str, bool]:
        if "model" in request or request.get("anthropic_version") not in _VERSIONS:
            raise ClientError(
                400,
                "invalid_request_error",
                "the path must contain the model, and the body must contain the version",
            )
        model, _, method = target.rpartition("/models/")[2].partition(":")
        stream = method == "streamRawPredict"
        if stream != request.get("stream", False):
            reason = "the path and the body disagree on whether the response is a stream"
            raise ClientError(400, "invalid_request_error", reason)
        return unquote(model), stream


def endpoint(path: str) -> type[MockExchange] | None:
    """Returns the class that serves a percent-encoded path; None for an unknown path."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    google, model, method = found.groups()
    if google:
        return _GOOGLE.get(method)
    if (model, method) == ("count-tokens", "rawPredict"):
        return TokenCount
    return RawPrediction if method in ("rawPredict", "streamRawPredict") else None


_GOOGLE: dict[str, type[MockExchange]] = {
    "generateContent": GeneratedContent,
    "streamGenerateContent": GeneratedContent,
    "countTokens": GeneratedTokens,
}
