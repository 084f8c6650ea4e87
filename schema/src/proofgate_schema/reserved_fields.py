"""Header and body fields that no configuration may set for a provider."""

from __future__ import annotations

#: Headers of a connection (RFC 9110, section 7.6.1), headers for credentials, which belong in `auth`, and
#: headers that the gateway writes itself.
RESERVED_HEADERS = (
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "expect",
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "accept",
    "accept-encoding",
    "user-agent",
    "x-request-id",
    "authorization",
    "api-key",
    "x-api-key",
    "x-goog-api-key",
    "cookie",
    "traceparent",
    "tracestate",
    "anthropic-version",
    "anthropic-beta",
)
RESERVED_PREFIXES = ("proxy-", "x-amz-")
#: Body fields that the gateway reads to route, evaluate, limit and price requests. In lower case and without
#: underscores, because the spelling differs between APIs.
GATEWAY_READ_FIELDS = (
    "model",
    "models",
    "messages",
    "prompt",
    "input",
    "inputtext",
    "instructions",
    "system",
    "systeminstruction",
    "contents",
    "stream",
    "streamoptions",
    "streamformat",
    "maxtokens",
    "maxcompletiontokens",
    "maxoutputtokens",
    "n",
    "bestof",
    "generationconfig",
    "inferenceconfig",
    "servicetier",
    "speed",
    "inferencegeo",
    "promptcacheretention",
    "tools",
    "functions",
    "toolconfig",
    "websearchoptions",
    "previousresponseid",
    "conversation",
    "background",
    "mcpservers",
    "container",
    "thread",
    "fallbacks",
    "cachedcontent",
)


def is_read_by_gateway(name: str) -> bool:
    """Return whether the gateway reads a body field itself, in any spelling."""
    return name.lower().replace("_", "") in GATEWAY_READ_FIELDS
