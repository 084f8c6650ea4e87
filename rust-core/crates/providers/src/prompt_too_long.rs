/// Texts that providers send when a prompt exceeds the model's context, in lower case: OpenAI and OpenAI-compatible
/// providers send a code or a message (vLLM, Mistral, DeepSeek); Anthropic, Gemini and Bedrock only a message.
const TOO_LONG_MESSAGES: [&[u8]; 7] = [
    b"context_length_exceeded",
    b"maximum context length",
    b"prompt is too long",
    b"exceed context limit",
    b"exceeds the maximum number of tokens",
    b"input is too long",
    b"too many tokens",
];

/// Whether an error body (status 400 or 413) reports that the prompt exceeds the model's context.
#[must_use]
pub fn is_prompt_too_long(error: &[u8]) -> bool {
    let says = |saying: &&[u8]| {
        let mut places = error.windows(saying.len());
        places.any(|place| place.eq_ignore_ascii_case(saying))
    };
    TOO_LONG_MESSAGES.iter().any(says)
}

#[cfg(test)]
mod tests {
    use super::is_prompt_too_long;

    #[test]
    fn a_prompt_that_is_too_long_is_known_by_the_words_of_each_family() {
        for error in [
            r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","code":"context_length_exceeded"}}"#,
            r#"{"object":"error","message":"This model's Maximum Context Length is 4096 tokens."}"#,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            r#"{"type":"error","error":{"message":"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"}}"#,
            r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}"#,
            r#"{"message":"Input is too long for requested model."}"#,
        ] {
            assert!(is_prompt_too_long(error.as_bytes()), "{error}");
        }
    }

    #[test]
    fn other_mistakes_are_none() {
        for error in [
            "",
            "{}",
            r#"{"error":{"message":"Invalid value for max_tokens","code":"invalid_value"}}"#,
        ] {
            assert!(!is_prompt_too_long(error.as_bytes()), "{error}");
        }
    }
}
