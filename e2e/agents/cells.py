"""Which client runs before which provider, and what comes of it where that is not `works`.

A row is a client with the API that it speaks. A new translation adds its provider to the row's `providers`: before all
others a turn is tried, and has to be refused by name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from e2e.agents.gateway import MODELS

ALL = tuple(MODELS)


@dataclass(frozen=True)
class Known:
    """A result that is not `works`, and is known."""

    #: Who does not do it: the gateway by name, the gateway otherwise, or the client, before its own vendor as well.
    kind: Literal["refused", "fails", "client"]
    #: What the result of a run contains then.
    says: str
    #: Why, for the page.
    because: str

    @property
    def result(self) -> str:
        return f"{self.kind}: {self.because}"


#: Before the providers that a client's API does not reach.
UNREACHED = Known(
    "refused", "no translation|endpoint_not_supported_by_model|cannot be reached", "`endpoint_not_supported_by_model`"
)


@dataclass(frozen=True)
class Row:
    """A client, the API that it is set up to speak, and the providers that this reaches."""

    #: Of the package, as its registry has it.
    client: str
    api: str
    providers: tuple[str, ...]
    #: A driver of this folder, or a command of `commands.py`.
    runs: str
    #: The lock file of its environment of Python; empty for packages of Node.
    environment: str = ""
    #: Models other than those of `MODELS`.
    models: dict[str, str] = field(default_factory=dict)
    #: What does not work: by scenario, and by provider where it is not so before all of them.
    known: dict[str | tuple[str, str], Known] = field(default_factory=dict)
    #: The providers that are set to leave out what they have no counterpart for.
    drops: tuple[str, ...] = ()

    def model(self, provider: str) -> str:
        return self.models.get(provider, MODELS[provider])

    def expected(self, provider: str, scenario: str) -> Known | None:
        """What is known not to work."""
        if provider not in self.providers:
            return UNREACHED
        return self.known.get((provider, scenario)) or self.known.get(scenario)


RESPONSES = {"OpenAI": "gpt-5.5"}
ROWS = (
    Row("@anthropic-ai/claude-code", "messages", ("Anthropic", "OpenAI"), "claude"),
    Row("@openai/codex", "responses", ("OpenAI",), "codex", models=RESPONSES),
    Row("opencode-ai", "chat", ALL, "opencode"),
    Row("opencode-ai", "messages", ("Anthropic", "OpenAI"), "opencode"),
    Row("opencode-ai", "responses", ("OpenAI",), "opencode", models=RESPONSES),
    Row("@google/gemini-cli", "google", ("Gemini",), "gemini"),
    Row("aider-chat", "chat", ALL, "aider", "aider"),
    Row("aider-chat", "messages", ("Anthropic", "OpenAI"), "aider", "aider"),
    Row("openai-agents", "responses", ("OpenAI",), "agents_sdk", "agents", RESPONSES),
    Row("openai-agents", "chat", ALL, "agents_sdk", "agents"),
    Row("pydantic-ai", "chat", ALL, "pydantic_ai", "agents"),
    Row("pydantic-ai", "responses", ("OpenAI",), "pydantic_ai", "agents", RESPONSES),
    Row("pydantic-ai", "messages", ("Anthropic", "OpenAI"), "pydantic_ai", "agents"),
    Row("pydantic-ai", "google", ("Gemini",), "pydantic_ai", "agents"),
    Row("langchain-openai", "chat", ALL, "langchain", "libraries"),
    Row("langchain-openai", "responses", ("OpenAI",), "langchain", "libraries", RESPONSES),
    Row("langchain-anthropic", "messages", ("Anthropic", "OpenAI"), "langchain", "libraries"),
    Row("langchain-google-genai", "google", ("Gemini",), "langchain", "libraries"),
    Row("llama-index", "chat", ALL, "llama_index", "libraries"),
    Row("llama-index", "responses", ("OpenAI",), "llama_index", "libraries", RESPONSES),
    Row("llama-index", "messages", ("Anthropic", "OpenAI"), "llama_index", "libraries"),
    Row("llama-index", "google", ("Gemini",), "llama_index", "libraries"),
    Row("ai", "responses", ("OpenAI",), "ai_sdk.mjs", models=RESPONSES),
    Row("ai", "responses-not-stored", ("OpenAI",), "ai_sdk.mjs", models=RESPONSES),
    Row("ai", "chat", ALL, "ai_sdk.mjs"),
    Row("ai", "messages", ("Anthropic", "OpenAI"), "ai_sdk.mjs"),
    Row("ai", "google", ("Gemini",), "ai_sdk.mjs"),
)
