use crate::sigv4::encode_segment;
use crate::storage_operation::StorageOperation;

/// The API dialect of one path: how its requests and responses are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// OpenAI's `POST /v1/chat/completions`.
    Chat,
    /// OpenAI's `POST /v1/completions`.
    Completions,
    /// OpenAI's `POST /v1/responses`.
    Responses,
    /// OpenAI's `POST /v1/responses/input_tokens`.
    ResponseTokens,
    /// OpenAI's `POST /v1/embeddings`.
    Embeddings,
    /// OpenAI's `POST /v1/moderations`.
    Moderations,
    /// OpenAI's `POST /v1/images/generations`.
    Images,
    /// OpenAI's `POST /v1/audio/speech`.
    Speech,
    /// OpenAI's `POST /v1/audio/transcriptions`.
    Transcriptions,
    /// OpenAI's `POST /v1/audio/translations`.
    Translations,
    /// OpenAI's `POST /v1/images/edits`.
    ImageEdits,
    /// OpenAI's `POST /v1/images/variations`.
    ImageVariations,
    /// An operation on OpenAI's files and batches.
    Storage(StorageOperation),
    /// Anthropic's `POST /v1/messages`.
    Messages,
    /// Anthropic's `POST /v1/messages/count_tokens`.
    CountTokens,
    /// Google's `generateContent` and `streamGenerateContent`.
    Gemini,
    /// Google's `countTokens`.
    GeminiTokens,
    /// Google's `embedContent`.
    GeminiEmbedding,
    /// Google's `batchEmbedContents`.
    GeminiEmbeddings,
    /// Amazon Bedrock's `Converse` and `ConverseStream`: upstream only.
    Converse,
    /// Anthropic's messages in Amazon Bedrock's `InvokeModel` and `InvokeModelWithResponseStream`: upstream only.
    Invoke,
    /// Amazon Bedrock's `CountTokens`: upstream only.
    InvokeTokens,
}

/// The API family of a dialect: how keys are sent, and the format of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Family {
    /// `Authorization: Bearer`, `{"error": {"message", "type", "param", "code"}}`.
    #[default]
    OpenAi,
    /// `x-api-key`, `{"type": "error", "error": {"type", "message"}}`.
    Anthropic,
    /// `x-goog-api-key`, `{"error": {"code", "message", "status"}}`.
    Google,
    /// `Authorization` with a key or a signature, `{"message"}` and the error's name in a response header.
    Amazon,
}

impl Family {
    /// Returns the dialects of this family.
    pub fn dialects(self) -> &'static [Dialect] {
        match self {
            Family::OpenAi => &[
                Dialect::Chat,
                Dialect::Completions,
                Dialect::Responses,
                Dialect::ResponseTokens,
                Dialect::Embeddings,
                Dialect::Moderations,
                Dialect::Images,
                Dialect::Speech,
                Dialect::Transcriptions,
                Dialect::Translations,
                Dialect::ImageEdits,
                Dialect::ImageVariations,
            ],
            Family::Anthropic => &[Dialect::Messages, Dialect::CountTokens],
            Family::Google => &[
                Dialect::Gemini,
                Dialect::GeminiTokens,
                Dialect::GeminiEmbedding,
                Dialect::GeminiEmbeddings,
            ],
            Family::Amazon => &[Dialect::Converse, Dialect::Invoke, Dialect::InvokeTokens],
        }
    }
}

impl Dialect {
    /// Every dialect that clients can use, each on its own path.
    pub const ALL: [Dialect; 18] = [
        Dialect::Chat,
        Dialect::Completions,
        Dialect::Responses,
        Dialect::ResponseTokens,
        Dialect::Embeddings,
        Dialect::Moderations,
        Dialect::Images,
        Dialect::Speech,
        Dialect::Transcriptions,
        Dialect::Translations,
        Dialect::ImageEdits,
        Dialect::ImageVariations,
        Dialect::Messages,
        Dialect::CountTokens,
        Dialect::Gemini,
        Dialect::GeminiTokens,
        Dialect::GeminiEmbedding,
        Dialect::GeminiEmbeddings,
    ];

    /// Returns the path that clients use, as records name it; for files and batches, preceded by the method.
    pub fn path(self) -> &'static str {
        match self {
            Dialect::Chat => "/v1/chat/completions",
            Dialect::Completions => "/v1/completions",
            Dialect::Responses => "/v1/responses",
            Dialect::ResponseTokens => "/v1/responses/input_tokens",
            Dialect::Embeddings => "/v1/embeddings",
            Dialect::Moderations => "/v1/moderations",
            Dialect::Images => "/v1/images/generations",
            Dialect::Speech => "/v1/audio/speech",
            Dialect::Transcriptions => "/v1/audio/transcriptions",
            Dialect::Translations => "/v1/audio/translations",
            Dialect::ImageEdits => "/v1/images/edits",
            Dialect::ImageVariations => "/v1/images/variations",
            Dialect::Storage(stored) => stored.name(),
            Dialect::Messages => "/v1/messages",
            Dialect::CountTokens => "/v1/messages/count_tokens",
            Dialect::Gemini => "/v1beta/models/{model}:generateContent",
            Dialect::GeminiTokens => "/v1beta/models/{model}:countTokens",
            Dialect::GeminiEmbedding => "/v1beta/models/{model}:embedContent",
            Dialect::GeminiEmbeddings => "/v1beta/models/{model}:batchEmbedContents",
            Dialect::Converse | Dialect::Invoke | Dialect::InvokeTokens => "/model",
        }
    }

    /// Returns the path below a provider's base URL; for a dialect with the model in the path, the part before the
    /// model.
    pub fn upstream_path(self) -> &'static str {
        match (self, self.family()) {
            (Dialect::Storage(stored), _) => stored.upstream_path(),
            (_, Family::Google) => "/models",
            _ => self.path().trim_start_matches("/v1"),
        }
    }

    /// Whether the path, and not the body, names the model and selects streaming.
    pub fn has_model_in_path(self) -> bool {
        self.family() == Family::Google
    }

    /// Whether requests are forms with files (`multipart/form-data`), not JSON.
    pub fn has_form(self) -> bool {
        matches!(
            self,
            Dialect::Transcriptions
                | Dialect::Translations
                | Dialect::ImageEdits
                | Dialect::ImageVariations
                | Dialect::Storage(StorageOperation::FileUpload)
        )
    }

    /// Whether requests have a body.
    pub fn has_body(self) -> bool {
        match self {
            Dialect::Storage(stored) => stored.has_body(),
            _ => true,
        }
    }

    /// Returns the HTTP method of requests.
    pub fn method(self) -> &'static str {
        match self {
            Dialect::Storage(stored) => stored.method(),
            _ => "POST",
        }
    }

    /// Whether request bodies name a model.
    pub(crate) fn has_model_in_body(self) -> bool {
        !self.has_model_in_path() && !matches!(self, Dialect::Storage(_))
    }

    /// Whether responses can be plain text.
    pub fn can_respond_with_text(self) -> bool {
        matches!(self, Dialect::Transcriptions | Dialect::Translations)
    }

    /// Returns the end of an upstream path that contains the model, percent-encoded and with its query; empty for
    /// other dialects.
    pub fn upstream_model_path(self, model: &str, stream: bool) -> String {
        let method = match (self, stream) {
            (Dialect::Gemini, false) => ":generateContent",
            (Dialect::Gemini, true) => ":streamGenerateContent?alt=sse",
            (Dialect::GeminiTokens, _) => ":countTokens",
            (Dialect::GeminiEmbedding, _) => ":embedContent",
            (Dialect::GeminiEmbeddings, _) => ":batchEmbedContents",
            _ => return String::new(),
        };
        let mut end = String::from("/");
        encode_segment(&mut end, model);
        end.push_str(method);
        end
    }

    /// Returns the dialect of a path.
    pub fn from_path(path: &str) -> Option<Dialect> {
        Dialect::ALL.into_iter().find(|dialect| dialect.path() == path)
    }

    /// Returns the API family.
    pub fn family(self) -> Family {
        match self {
            Dialect::Messages | Dialect::CountTokens => Family::Anthropic,
            Dialect::Gemini
            | Dialect::GeminiTokens
            | Dialect::GeminiEmbedding
            | Dialect::GeminiEmbeddings => Family::Google,
            Dialect::Converse | Dialect::Invoke | Dialect::InvokeTokens => Family::Amazon,
            _ => Family::OpenAi,
        }
    }

    /// Whether responses can be event streams.
    pub fn supports_streaming(self) -> bool {
        !matches!(
            self,
            Dialect::Embeddings
                | Dialect::Moderations
                | Dialect::ResponseTokens
                | Dialect::CountTokens
                | Dialect::InvokeTokens
                | Dialect::GeminiEmbedding
                | Dialect::GeminiEmbeddings
                | Dialect::Translations
                | Dialect::ImageVariations
                | Dialect::Storage(_)
        )
    }

    /// Whether the provider generates output, for which tokens have to be reserved.
    pub fn generates_output(self) -> bool {
        self.supports_streaming() || self.has_form()
    }

    /// Whether requests are in the format of OpenAI's Responses.
    pub fn uses_responses_format(self) -> bool {
        matches!(self, Dialect::Responses | Dialect::ResponseTokens)
    }

    /// Whether requests only count the tokens of a prompt.
    pub fn only_counts_tokens(self) -> bool {
        matches!(
            self,
            Dialect::ResponseTokens | Dialect::CountTokens | Dialect::GeminiTokens
        )
    }

    /// Whether the provider charges tokens for requests.
    pub fn consumes_tokens(self) -> bool {
        !matches!(
            self,
            Dialect::Moderations
                | Dialect::ResponseTokens
                | Dialect::CountTokens
                | Dialect::GeminiTokens
                | Dialect::InvokeTokens
                | Dialect::Storage(_)
        )
    }

    /// Whether `stream_options.include_usage` requests the usage of a stream.
    pub(crate) fn has_stream_options(self) -> bool {
        matches!(self, Dialect::Chat | Dialect::Completions)
    }
}
