//! A client of OpenAI's chat completions, and a provider of Anthropic's messages.
