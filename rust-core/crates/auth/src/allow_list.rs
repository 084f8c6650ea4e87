use serde::Deserialize;

/// What a request can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Endpoint {
    /// `POST /v1/chat/completions`.
    #[serde(rename = "chat.completions")]
    ChatCompletions,
    /// `POST /v1/completions`.
    #[serde(rename = "completions")]
    Completions,
    /// `POST /v1/responses`.
    #[serde(rename = "responses")]
    Responses,
    /// `POST /v1/embeddings`.
    #[serde(rename = "embeddings")]
    Embeddings,
    /// `POST /v1/moderations`.
    #[serde(rename = "moderations")]
    Moderations,
    /// `POST /v1/images/generations`.
    #[serde(rename = "images.generations")]
    ImagesGenerations,
    /// `POST /v1/audio/speech`.
    #[serde(rename = "audio.speech")]
    AudioSpeech,
    /// `POST /v1/audio/transcriptions`.
    #[serde(rename = "audio.transcriptions")]
    Transcriptions,
    /// `POST /v1/audio/translations`.
    #[serde(rename = "audio.translations")]
    Translations,
    /// `POST /v1/images/edits`.
    #[serde(rename = "images.edits")]
    ImageEdits,
    /// `POST /v1/images/variations`.
    #[serde(rename = "images.variations")]
    ImageVariations,
    /// `/v1/files` and what is below it.
    #[serde(rename = "files")]
    Files,
    /// `/v1/batches` and what is below it.
    #[serde(rename = "batches")]
    Batches,
    /// `POST /v1/messages` and `POST /v1/messages/count_tokens`.
    #[serde(rename = "messages")]
    Messages,
    /// `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent` and `:countTokens`.
    #[serde(rename = "generate.content")]
    GenerateContent,
    /// `POST /v1beta/models/{model}:embedContent` and `:batchEmbedContents`.
    #[serde(rename = "embed.content")]
    EmbedContent,
    /// `GET /v1/models` and `GET /v1beta/models`.
    #[serde(rename = "models")]
    Models,
    /// `GET /v1/receipts/{id}`.
    #[serde(rename = "receipts")]
    Receipts,
}

impl Endpoint {
    /// Every endpoint.
    pub const ALL: [Endpoint; 18] = [
        Endpoint::ChatCompletions,
        Endpoint::Completions,
        Endpoint::Responses,
        Endpoint::Embeddings,
        Endpoint::Moderations,
        Endpoint::ImagesGenerations,
        Endpoint::AudioSpeech,
        Endpoint::Transcriptions,
        Endpoint::Translations,
        Endpoint::ImageEdits,
        Endpoint::ImageVariations,
        Endpoint::Files,
        Endpoint::Batches,
        Endpoint::Messages,
        Endpoint::GenerateContent,
        Endpoint::EmbedContent,
        Endpoint::Models,
        Endpoint::Receipts,
    ];

    /// The name in a configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            Endpoint::ChatCompletions => "chat.completions",
            Endpoint::Completions => "completions",
            Endpoint::Responses => "responses",
            Endpoint::Embeddings => "embeddings",
            Endpoint::Moderations => "moderations",
            Endpoint::ImagesGenerations => "images.generations",
            Endpoint::AudioSpeech => "audio.speech",
            Endpoint::Transcriptions => "audio.transcriptions",
            Endpoint::Translations => "audio.translations",
            Endpoint::ImageEdits => "images.edits",
            Endpoint::ImageVariations => "images.variations",
            Endpoint::Files => "files",
            Endpoint::Batches => "batches",
            Endpoint::Messages => "messages",
            Endpoint::GenerateContent => "generate.content",
            Endpoint::EmbedContent => "embed.content",
            Endpoint::Models => "models",
            Endpoint::Receipts => "receipts",
        }
    }
}

/// What a tenant may call.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    /// Models it may call; `None` means all of them.
    pub models: Option<Vec<String>>,
    /// Endpoints it may call; `None` means all of them.
    pub endpoints: Option<Vec<Endpoint>>,
    /// Kinds of tools that the provider may run for it, such as `web_search`.
    pub hosted_tools: Vec<String>,
}

impl AllowList {
    /// Whether `model` may be called.
    pub fn allows_model(&self, model: &str) -> bool {
        self.models
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|name| name == model))
    }

    /// Whether `endpoint` may be called; if not, the answer is [`AuthError::EndpointNotAllowed`](crate::AuthError).
    pub fn allows_endpoint(&self, endpoint: Endpoint) -> bool {
        self.endpoints
            .as_ref()
            .is_none_or(|allowed| allowed.contains(&endpoint))
    }
}
