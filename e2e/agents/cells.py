"""The tested pairs of client and provider, with the expected result of each pair that does not work.

A row is a client with the API that it uses. A new translation adds its provider to the row's `providers`. With every
other provider, one turn is tried, and the gateway must refuse it with its error code.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from e2e.agents.gateway import MODELS

ALL = tuple(MODELS)


@dataclass(frozen=True)
class Known:
    """An expected result other than `works`."""

    #: The cause: the gateway with an error code, the gateway without one, or the client, even with its own vendor.
    kind: Literal["refused", "fails", "client"]
    #: A regular expression that the result of a run must match.
    says: str
    #: The reason, for the documentation page.
    because: str

    @property
    def result(self) -> str:
        return f"{self.kind}: {self.because}"


#: The expected result with the providers that a client's API does not reach.
UNREACHED = Known(
    "refused",
    r"The\s+provider\s+of\s+this\s+model\s+(speaks|supports|is)|endpoint_not_supported_by_model",
    "the gateway answers `endpoint_not_supported_by_model`",
)


@dataclass(frozen=True)
class Row:
    """A client, the API that it is configured to use, and the providers that it reaches with this API."""

    #: The package's name in its registry.
    client: str
    api: str
    providers: tuple[str, ...]
    #: The name of a driver in this folder, or of a command in `commands.py`.
    runs: str
    #: The lock file of its Python environment; empty for Node packages.
    environment: str = ""
    #: Models that differ from those in `MODELS`.
    models: dict[str, str] = field(default_factory=dict)
    #: What does not work, by scenario; by provider and scenario if it works with other providers.
    known: dict[str | tuple[str, str], Known] = field(default_factory=dict)
    #: The providers that are configured to drop request fields which they do not support.
    drops: tuple[str, ...] = ()

    def model(self, provider: str) -> str:
        return self.models.get(provider, MODELS[provider])

    def expected(self, provider: str, scenario: str) -> Known | None:
        """The expected failure, or None."""
        here = self.known.get((provider, scenario))
        return here or (self.known.get(scenario) if provider in self.providers else UNREACHED)


RESPONSES = {"OpenAI": "gpt-5.5"}

STORED = Known(
    "refused",
    "item_reference",
    "the gateway refuses `item_reference`, a reference to an item that the provider stored; set `store: false`",
)
NO_MEDIA = Known("client", "They show: $", "the client sends only the text of tool results")
NO_DOCUMENT = Known("client", "They show: image/png$", "the client drops a document that its tool returns")
PICTURES_IN_TOOLS = Known(
    "client",
    "Supported values are: 'text'",
    "the client sends images in tool results, which OpenAI's Chat Completions refuse",
)
NO_RETRY = Known("client", "429", "the client does not retry after 429")
NO_PDF = Known("client", "They show: image/png", "the client has no tool that reads a PDF")
MAX_TOKENS = Known(
    "client",
    "'max_tokens' is not supported",
    "the client sends `max_tokens`, which OpenAI's own models refuse; use Responses",
)
BROKEN = Known(
    "client",
    "Cannot instantiate typing.Union",
    "`llama-index-llms-anthropic` 0.12.3 does not run with `anthropic` 2.14",
)
BY_NAME = Known("client", "OPENAI_API_KEY", "the client uses OpenAI's API for every name that begins with `gpt-`")
OWN_NAMES = Known("client", "Unknown model", "the client accepts only names of its vendor's models")
OF_LLAMA_AT_GOOGLE: dict[str | tuple[str, str], Known] = {"media": NO_DOCUMENT, "retries": NO_RETRY}

ROWS = (
    Row("@anthropic-ai/claude-code", "messages", ALL, "claude"),
    Row(
        "@openai/codex",
        "responses",
        ALL,
        "codex",
        models=RESPONSES,
        known={"media": NO_PDF, "retries": NO_RETRY},
    ),
    Row("opencode-ai", "chat", ALL, "opencode", known={("OpenAI", "turn"): MAX_TOKENS}),
    Row("opencode-ai", "messages", ALL, "opencode"),
    Row("opencode-ai", "responses", ALL, "opencode", models=RESPONSES),
    Row("@google/gemini-cli", "google", ("Gemini",), "gemini"),
    Row("aider-chat", "chat", ALL, "aider", "aider"),
    Row("aider-chat", "messages", ALL, "aider", "aider", known={("OpenAI", "turn"): BY_NAME}),
    Row("openai-agents", "responses", ALL, "agents_sdk", "agents", RESPONSES),
    Row("openai-agents", "chat", ALL, "agents_sdk", "agents", known={"media": NO_MEDIA}),
    Row("pydantic-ai", "chat", ALL, "pydantic_ai", "agents"),
    Row("pydantic-ai", "responses", ALL, "pydantic_ai", "agents", RESPONSES),
    Row("pydantic-ai", "messages", ALL, "pydantic_ai", "agents"),
    Row("pydantic-ai", "google", ("Gemini",), "pydantic_ai", "agents", known={"retries": NO_RETRY}),
    Row(
        "langchain-openai",
        "chat",
        ALL,
        "langchain",
        "libraries",
        known={("OpenAI", "media"): PICTURES_IN_TOOLS},
    ),
    Row("langchain-openai", "responses", ALL, "langchain", "libraries", RESPONSES),
    Row("langchain-anthropic", "messages", ALL, "langchain", "libraries"),
    Row("langchain-google-genai", "google", ("Gemini",), "langchain", "libraries"),
    Row("llama-index", "chat", ALL, "llama_index", "libraries", known={"media": NO_MEDIA}),
    Row(
        "llama-index",
        "responses",
        ALL,
        "llama_index",
        "libraries",
        RESPONSES,
        known={(provider, "turn"): OWN_NAMES for provider in ("Anthropic", "Gemini", "Bedrock")},
    ),
    Row(
        "llama-index",
        "messages",
        ALL,
        "llama_index",
        "libraries",
        known={"turn": BROKEN, ("OpenAI", "turn"): OWN_NAMES, ("Gemini", "turn"): OWN_NAMES},
    ),
    Row("llama-index", "google", ("Gemini",), "llama_index", "libraries", known=OF_LLAMA_AT_GOOGLE),
    Row(
        "ai",
        "responses",
        ALL,
        "ai_sdk.mjs",
        models=RESPONSES,
        known={("OpenAI", "thinking"): STORED},
    ),
    Row("ai", "responses-not-stored", ALL, "ai_sdk.mjs", models=RESPONSES),
    Row("ai", "chat", ALL, "ai_sdk.mjs", known={"media": NO_MEDIA}),
    Row("ai", "messages", ALL, "ai_sdk.mjs"),
    Row("ai", "google", ("Gemini",), "ai_sdk.mjs"),
)
