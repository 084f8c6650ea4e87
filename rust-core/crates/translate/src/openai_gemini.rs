//! A client of OpenAI's chat completions, and Google's Gemini.
