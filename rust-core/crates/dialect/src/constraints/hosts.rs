//! Missing endpoints of providers with OpenAI's API, by host.

/// Hosts of APIs that have chat completions but no `/responses`, each with its source. A leading `*` matches any
/// prefix.
const HOSTS_WITHOUT_RESPONSES: &[(&str, &str)] = &[
    (
        "generativelanguage.googleapis.com",
        "ai.google.dev, OpenAI compatibility: chat completions, embeddings, images, models",
    ),
    (
        "*aiplatform.googleapis.com",
        "cloud.google.com, Vertex AI: Using OpenAI libraries: chat completions alone",
    ),
    (
        "api.mistral.ai",
        "docs.mistral.ai, API: chat completions, agents, conversations",
    ),
    (
        "api.cohere.ai",
        "docs.cohere.com, Compatibility API: chat completions, embeddings",
    ),
    (
        "api.cohere.com",
        "docs.cohere.com, Compatibility API: chat completions, embeddings",
    ),
    (
        "api.minimax.io",
        "MiniMax-AI/MiniMax-M2#112: 404 at /v1/responses",
    ),
    (
        "api.minimaxi.com",
        "MiniMax-AI/MiniMax-M2#112: 404 at /v1/responses",
    ),
];

/// Whether the provider at a host (lower case) is known to lack `/responses`. An unlisted provider
/// may have it, as OpenAI, Azure, DeepSeek, Groq, OpenRouter, xAI, and vLLM and Ollama of 2026 do.
#[must_use]
pub fn lacks_responses_api(host: &str) -> bool {
    HOSTS_WITHOUT_RESPONSES
        .iter()
        .any(|(known, _)| match known.strip_prefix('*') {
            Some(end) => host.ends_with(end),
            None => host == *known,
        })
}

#[cfg(test)]
mod tests {
    use super::lacks_responses_api;

    #[test]
    fn a_host_that_no_row_names_may_have_responses() {
        for host in [
            "api.mistral.ai",
            "europe-west1-aiplatform.googleapis.com",
            "aiplatform.googleapis.com",
        ] {
            assert!(lacks_responses_api(host), "{host}");
        }
        for host in [
            "api.openai.com",
            "api.deepseek.com",
            "localhost",
            "api.mistral.ai.example",
        ] {
            assert!(!lacks_responses_api(host), "{host}");
        }
    }
}
