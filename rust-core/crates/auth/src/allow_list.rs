use serde::Deserialize;

/// An endpoint of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
pub enum Endpoint {
    /// `POST /v1/chat/completions`.
    ChatCompletions,
    /// `POST /v1/completions`.
    Completions,
    /// `POST /v1/responses`.
    Responses,
    /// `POST /v1/embeddings`.
    Embeddings,
    /// `POST /v1/moderations`.
    Moderations,
    /// `POST /v1/images/generations`.
    ImagesGenerations,
    /// `POST /v1/audio/speech`.
    AudioSpeech,
    /// `POST /v1/audio/transcriptions`.
    #[serde(rename = "AudioTranscriptions")]
    Transcriptions,
    /// `POST /v1/audio/translations`.
    #[serde(rename = "AudioTranslations")]
    Translations,
    /// `POST /v1/images/edits`.
    ImageEdits,
    /// `POST /v1/images/variations`.
    ImageVariations,
    /// `/v1/files` and the paths below it.
    Files,
    /// `/v1/batches` and the paths below it.
    Batches,
    /// `POST /v1/messages` and `POST /v1/messages/count_tokens`.
    Messages,
    /// `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent` and `:countTokens`.
    GenerateContent,
    /// `POST /v1beta/models/{model}:embedContent` and `:batchEmbedContents`.
    EmbedContent,
    /// `GET /v1/models` and `GET /v1beta/models`.
    Models,
    /// `GET /v1/receipts/{id}`.
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

    /// Returns its name in a configuration.
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

/// The models, endpoints and tools that a tenant may use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AllowList {
    /// Allowed models; `None`: all models.
    pub models: Option<Vec<String>>,
    /// Allowed endpoints; `None`: all endpoints.
    pub endpoints: Option<Vec<Endpoint>>,
    /// Allowed kinds of provider-run tools, such as `web_search`.
    pub hosted_tools: Vec<String>,
}

impl AllowList {
    /// Whether `model` is allowed.
    pub fn allows_model(&self, model: &str) -> bool {
        self.models
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|name| name == model))
    }

    /// Whether `endpoint` is allowed; callers report
    /// [`AuthError::EndpointNotAllowed`](crate::AuthError) if not.
    pub fn allows_endpoint(&self, endpoint: Endpoint) -> bool {
        self.endpoints
            .as_ref()
            .is_none_or(|allowed| allowed.contains(&endpoint))
    }
}
