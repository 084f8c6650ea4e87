//! Maps a path and a method to a route.

use proofgate_auth::Endpoint;
use proofgate_providers::{Dialect, Family};
use proofgate_upstream::azure_path::{self, AzurePath};
use proofgate_upstream::claude_path;
use proofgate_upstream::google_path::{self, BodyForm, GooglePath, PathError, PathParams, percent_decode};
use proofgate_upstream::stored_path::{self, StoredObjectRequest, StoredPath, StoredPathError};
use proofgate_wire::{Method, RequestHead};

use crate::receipts::ReceiptRequest;

const MODELS_PATH: &str = "/v1/models";
const USAGE_PATH: &str = "/v1/usage";
const RECEIPTS_PATH: &str = "/v1/receipts";

/// The operation that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// A call to a provider, with the parameters of the path.
    Call(Dialect, Option<Box<PathParams>>),
    /// Access to files or batches that a provider stores for the tenant.
    StoredObject(Box<StoredObjectRequest>),
    /// An invalid path for stored objects, or an invalid query.
    InvalidStoredObject(StoredPathError),
    /// Lists the models that the tenant may use.
    Models,
    /// Describes one of these models, by name.
    Model(String),
    /// Reports the used part of the limits of the tenant and its key.
    Usage,
    /// Returns the proofs of one of the tenant's exchanges.
    Receipt(Box<ReceiptRequest>),
    /// A probe, by which clients without a key check that the gateway responds.
    Probe,
    /// A query for the methods that the path supports.
    Options(&'static str),
    /// A method that the path does not support, with the supported methods.
    WrongMethod(&'static str),
    /// An unknown path.
    Unknown,
    /// An invalid path of Google's API, or an invalid query.
    InvalidGooglePath(PathError),
}

/// The paths that clients probe. Claude Code probes `/` before its first request, and `/api/hello`
/// if that does not show whether the gateway responds.
const PROBE_PATHS: [&str; 2] = ["/", "/api/hello"];

const ALLOW_POST: &str = "POST, OPTIONS";
const ALLOW_GET: &str = "GET, HEAD, OPTIONS";

impl Route {
    /// Returns the route of a request, from its method, path, query and header fields.
    pub fn from_head(head: &RequestHead<'_>) -> Self {
        let (path, query) = match head.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (head.target, None),
        };
        let model = path
            .strip_prefix(MODELS_PATH)
            .and_then(|rest| rest.strip_prefix('/'))
            .filter(|name| !name.is_empty());
        if PROBE_PATHS.contains(&path) {
            return match head.method {
                Method::Get | Method::Head | Method::Options => Route::Probe,
                _ => Route::WrongMethod(ALLOW_GET),
            };
        }
        if let Some(dialect) = Dialect::from_path(path) {
            return match head.method {
                Method::Post => Route::Call(dialect, None),
                Method::Options => Route::Options(ALLOW_POST),
                _ => Route::WrongMethod(ALLOW_POST),
            };
        }
        if path == USAGE_PATH {
            return match head.method {
                Method::Get | Method::Head => Route::Usage,
                Method::Options => Route::Options(ALLOW_GET),
                _ => Route::WrongMethod(ALLOW_GET),
            };
        }
        // A request with this header is for Anthropic's API, whose files have the same path.
        if head.headers.get("anthropic-version").is_none()
            && let Some(found) = stored_path::parse(path, query, head.method)
        {
            return match found {
                StoredPath::Call(call) => Route::StoredObject(call),
                StoredPath::Options(allow) => Route::Options(allow),
                StoredPath::WrongMethod(allow) => Route::WrongMethod(allow),
                StoredPath::Refused(error) => Route::InvalidStoredObject(error),
            };
        }
        if let Some(found) = azure_path::parse(path) {
            return Route::from_azure(found, head.method);
        }
        if let Some(found) = claude_path::parse(path) {
            return match (found, head.method) {
                (Err(error), _) => Route::InvalidGooglePath(error),
                (Ok(_), Method::Options) => Route::Options(ALLOW_POST),
                (Ok((dialect, in_path)), Method::Post) => Route::Call(dialect, Some(Box::new(in_path))),
                _ => Route::WrongMethod(ALLOW_POST),
            };
        }
        if let Some(id) = path
            .strip_prefix(RECEIPTS_PATH)
            .and_then(|rest| rest.strip_prefix('/'))
            && !id.is_empty()
            && !id.contains('/')
        {
            return match head.method {
                Method::Get | Method::Head => Route::Receipt(Box::new(ReceiptRequest {
                    id: id.into(),
                    query: query.map(Into::into),
                })),
                Method::Options => Route::Options(ALLOW_GET),
                _ => Route::WrongMethod(ALLOW_GET),
            };
        }
        match google_path::parse(path, query) {
            Ok(Some(found)) => return Route::from_google(found, head.method),
            Ok(None) => {}
            Err(error) => return Route::InvalidGooglePath(error),
        }
        match (head.method, model) {
            _ if model.is_none() && path != MODELS_PATH => Route::Unknown,
            // A name with a colon is an unsupported method of Google's API.
            (Method::Post, Some(name)) if name.contains(':') => Route::Unknown,
            (Method::Options, _) => Route::Options(ALLOW_GET),
            (Method::Get | Method::Head, None) => Route::Models,
            (Method::Get | Method::Head, Some(name)) => {
                Route::Model(String::from_utf8_lossy(&percent_decode(name)).into_owned())
            }
            _ => Route::WrongMethod(ALLOW_GET),
        }
    }

    fn from_azure(path: AzurePath, method: Method) -> Self {
        let allow = match path {
            AzurePath::Call(..) => ALLOW_POST,
            AzurePath::Models => ALLOW_GET,
        };
        match (path, method) {
            (_, Method::Options) => Route::Options(allow),
            (AzurePath::Call(dialect, in_path), Method::Post) => Route::Call(dialect, in_path.map(Box::new)),
            (AzurePath::Models, Method::Get | Method::Head) => Route::Models,
            _ => Route::WrongMethod(allow),
        }
    }

    fn from_google(path: GooglePath, method: Method) -> Self {
        let allow = match path {
            GooglePath::Call(..) => ALLOW_POST,
            GooglePath::Models | GooglePath::Model(_) => ALLOW_GET,
        };
        match (path, method) {
            (_, Method::Options) => Route::Options(allow),
            (GooglePath::Call(dialect, in_path), Method::Post) => {
                Route::Call(dialect, Some(Box::new(in_path)))
            }
            (GooglePath::Model(name), Method::Post) if name.contains(':') => Route::Unknown,
            (GooglePath::Models, Method::Get | Method::Head) => Route::Models,
            (GooglePath::Model(name), Method::Get | Method::Head) => Route::Model(name),
            _ => Route::WrongMethod(allow),
        }
    }

    /// Returns the dialect of a call to a provider; `None` for other routes.
    pub fn dialect(&self) -> Option<Dialect> {
        match self {
            Route::Call(dialect, _) => Some(*dialect),
            Route::StoredObject(call) => Some(Dialect::Storage(call.operation)),
            _ => None,
        }
    }

    /// Returns the format of the request body.
    pub fn body_form(&self) -> BodyForm {
        match self {
            Route::Call(_, Some(in_path)) => in_path.form,
            _ => BodyForm::default(),
        }
    }

    /// Returns the endpoint that the tenant must be allowed to use; `None` if every tenant may make
    /// the request, such as a request for its own usage.
    pub fn endpoint(&self) -> Option<Endpoint> {
        match self {
            Route::Call(..) | Route::StoredObject(_) => self.dialect().and_then(endpoint_for),
            Route::Models | Route::Model(_) => Some(Endpoint::Models),
            Route::Receipt(_) => Some(Endpoint::Receipts),
            Route::Usage
            | Route::Probe
            | Route::Options(_)
            | Route::WrongMethod(_)
            | Route::Unknown
            | Route::InvalidGooglePath(_)
            | Route::InvalidStoredObject(_) => None,
        }
    }

    /// Returns the API family whose error format applies. `GET /v1/models` exists in all families:
    /// a request with a version of Anthropic's API belongs to Anthropic's family, and a request
    /// with a key in the form of Google's clients belongs to Google's family.
    pub fn family(&self, head: &RequestHead<'_>) -> Family {
        match self {
            _ if self.body_form() == BodyForm::Invoke => Family::Amazon,
            Route::Call(dialect, _) => dialect.family(),
            Route::InvalidGooglePath(_) if claude_path::is_bedrock_path(head.target) => Family::Amazon,
            Route::InvalidGooglePath(_) => Family::Google,
            _ if google_path::is_google_only(head.target) => Family::Google,
            Route::Models | Route::Model(_) | Route::Receipt(_)
                if head.headers.get("anthropic-version").is_some() =>
            {
                Family::Anthropic
            }
            _ if head.keys.x_goog_api_key.is_some() => Family::Google,
            _ => Family::OpenAi,
        }
    }

    /// Returns the endpoint's name in records; `None` if it has none.
    pub fn path(&self) -> Option<&'static str> {
        match self {
            Route::Call(dialect, _) => Some(self.body_form().path(*dialect)),
            Route::StoredObject(call) => Some(call.operation.name()),
            Route::Models | Route::Model(_) => Some(MODELS_PATH),
            Route::Usage => Some(USAGE_PATH),
            Route::Receipt(_) => Some(RECEIPTS_PATH),
            Route::Probe
            | Route::Options(_)
            | Route::WrongMethod(_)
            | Route::Unknown
            | Route::InvalidGooglePath(_)
            | Route::InvalidStoredObject(_) => None,
        }
    }
}

/// Returns the endpoint of a dialect; `None` if it has none.
pub fn endpoint_for(dialect: Dialect) -> Option<Endpoint> {
    Some(match dialect {
        Dialect::Chat => Endpoint::ChatCompletions,
        Dialect::Completions => Endpoint::Completions,
        Dialect::Responses | Dialect::ResponseTokens => Endpoint::Responses,
        Dialect::Embeddings => Endpoint::Embeddings,
        Dialect::Moderations => Endpoint::Moderations,
        Dialect::Images => Endpoint::ImagesGenerations,
        Dialect::Speech => Endpoint::AudioSpeech,
        Dialect::Transcriptions => Endpoint::Transcriptions,
        Dialect::Translations => Endpoint::Translations,
        Dialect::ImageEdits => Endpoint::ImageEdits,
        Dialect::ImageVariations => Endpoint::ImageVariations,
        Dialect::Storage(stored) if stored.is_batch_operation() => Endpoint::Batches,
        Dialect::Storage(_) => Endpoint::Files,
        Dialect::Messages | Dialect::CountTokens => Endpoint::Messages,
        Dialect::Gemini | Dialect::GeminiTokens => Endpoint::GenerateContent,
        Dialect::GeminiEmbedding | Dialect::GeminiEmbeddings => Endpoint::EmbedContent,
        Dialect::Converse | Dialect::Invoke | Dialect::InvokeTokens => return None,
    })
}
