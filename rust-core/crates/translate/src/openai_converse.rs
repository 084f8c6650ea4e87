//! A client of OpenAI's chat completions, and Amazon Bedrock's Converse.
