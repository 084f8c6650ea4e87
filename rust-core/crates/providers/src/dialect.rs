/// What is spoken on one path: how its requests are read, and its answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's `POST /v1/chat/completions`.
    Chat,
    /// OpenAI's `POST /v1/completions`.
    Completions,
    /// OpenAI's `POST /v1/responses`.
    Responses,
    /// OpenAI's `POST /v1/embeddings`.
    Embeddings,
    /// OpenAI's `POST /v1/moderations`.
    Moderations,
    /// Anthropic's `POST /v1/messages`.
    Messages,
    /// Anthropic's `POST /v1/messages/count_tokens`.
    CountTokens,
}
