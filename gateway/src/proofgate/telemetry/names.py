"""Names of OpenTelemetry's conventions for generative AI, in the two supported versions.

All these conventions are still in development: opentelemetry.io/docs/specs/semconv/gen-ai (up to v1.41), and
later github.com/open-telemetry/semantic-conventions-genai.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
TOKEN_MODALITY = "gen_ai.token.modality"  # noqa: S105 - of a model's tokens
#: Attributes from the client. They are in the attribute registry, and not in the conventions for spans.
CONVERSATION = "gen_ai.conversation.id"
AGENT = "gen_ai.agent.id"
END_USER = "enduser.pseudo.id"
END_USER_NAME = "enduser.id"
CLIENT_ADDRESS = "client.address"
ERROR = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
STATUS = "http.response.status_code"
METHOD = "http.request.method"
ROUTE = "http.route"

_VERTEX = "/v1/projects/{project}/locations/{location}/publishers/anthropic/models"

#: Name of the operation for each endpoint.
OPERATIONS = {
    "/v1/chat/completions": "chat",
    "/v1/completions": "text_completion",
    "/v1/responses": "chat",
    "/v1/responses/input_tokens": "count_tokens",
    "/v1/embeddings": "embeddings",
    "/v1/moderations": "moderation",
    "/v1/images/generations": "image_generation",
    "/v1/images/edits": "image_edit",
    "/v1/images/variations": "image_variation",
    "/v1/audio/speech": "speech",
    "/v1/audio/transcriptions": "transcription",
    "/v1/audio/translations": "translation",
    "/v1/messages": "chat",
    "/v1/messages/count_tokens": "count_tokens",
    "/model/{model}/invoke": "chat",
    f"{_VERTEX}/{{model}}:rawPredict": "chat",
    f"{_VERTEX}/count-tokens:rawPredict": "count_tokens",
    "/v1beta/models/{model}:generateContent": "generate_content",
    "/v1beta/models/{model}:countTokens": "count_tokens",
    "/v1beta/models/{model}:embedContent": "embeddings",
    "/v1beta/models/{model}:batchEmbedContents": "embeddings",
    "POST /v1/files": "create_file",
    "GET /v1/files": "list_files",
    "GET /v1/files/{id}": "retrieve_file",
    "DELETE /v1/files/{id}": "delete_file",
    "GET /v1/files/{id}/content": "retrieve_file_content",
    "POST /v1/batches": "create_batch",
    "GET /v1/batches": "list_batches",
    "GET /v1/batches/{id}": "retrieve_batch",
    "POST /v1/batches/{id}/cancel": "cancel_batch",
}

#: Name of the provider for each type of provider.
PROVIDERS = {
    "OpenAI": "openai",
    "AzureOpenAI": "azure.ai.openai",
    "Anthropic": "anthropic",
    "Gemini": "gcp.gemini",
    "Bedrock": "aws.bedrock",
    "VertexAI": "gcp.vertex_ai",
}


@dataclass(frozen=True)
class ConventionNames:
    """Names that differ between the versions."""

    cache_write_tokens: str
    duration: str
    input_tokens: str | None
    """Name of the token counter; None if the version defines a histogram and no counter."""
    output_tokens: str | None


NAMES: dict[Literal["Latest", "V1_41"], ConventionNames] = {
    "Latest": ConventionNames(
        cache_write_tokens="gen_ai.usage.cache_write.input_tokens",
        duration="gen_ai.client.inference.duration",
        input_tokens="gen_ai.client.inference.usage.input_tokens",
        output_tokens="gen_ai.client.inference.usage.output_tokens",
    ),
    "V1_41": ConventionNames(
        cache_write_tokens="gen_ai.usage.cache_creation.input_tokens",
        duration="gen_ai.client.operation.duration",
        input_tokens=None,
        output_tokens=None,
    ),
}
