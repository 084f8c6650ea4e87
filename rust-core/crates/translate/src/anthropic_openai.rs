//! A client of Anthropic's messages, and a provider of OpenAI's chat completions.
