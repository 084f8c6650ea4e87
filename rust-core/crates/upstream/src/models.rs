//! The models that a tenant may use, as returned by `GET /v1/models` and `GET /v1beta/models`.
//!
//! Each list is one page. For a wildcard, the matching names that have a price are listed; the
//! wildcard itself is in a response header, where no client mistakes it for a model. The list
//! includes a model's input and output limits if its price states them, and its abilities if the
//! table of models states them, in the fields that clients read.

use proofgate_auth::Tenant;
use proofgate_base::rejection::Rejection;
use proofgate_providers::{Dialect, Family};
use proofgate_wire::encode;
use serde::Serialize;

use crate::capabilities::{CardCapabilities, InfoCapabilities, ModelCapabilities};
use crate::catalog::Catalog;
use crate::routes::Model;

/// The list in the form of OpenAI's API.
#[derive(Serialize)]
struct ModelList<'m> {
    object: &'static str,
    data: Vec<ModelCard<'m>>,
}

#[derive(Serialize)]
struct ModelCard<'m> {
    id: &'m str,
    object: &'static str,
    created: u64,
    owned_by: &'m str,
    /// The context length, under its field name in OpenRouter's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_length: Option<u64>,
    /// The context length, under its field name in Groq's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    context_window: Option<u64>,
    /// The maximum response tokens, under their field name in Groq's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    /// The abilities, under their field name in Mistral's list.
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<CardCapabilities>,
}

/// The list in the form of Anthropic's API, in one page.
#[derive(Serialize)]
struct ModelPage<'m> {
    data: Vec<ModelInfo<'m>>,
    has_more: bool,
    first_id: Option<&'m str>,
    last_id: Option<&'m str>,
}

#[derive(Serialize)]
struct ModelInfo<'m> {
    r#type: &'static str,
    id: &'m str,
    display_name: &'m str,
    created_at: &'static str,
    max_input_tokens: Option<u64>,
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capabilities: Option<InfoCapabilities>,
}

/// The list in the form of Google's API, in one page.
#[derive(Serialize)]
struct GoogleModelList<'m> {
    models: Vec<GoogleModel<'m>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GoogleModel<'m> {
    name: String,
    display_name: &'m str,
    /// The methods that the model supports in Google's dialect; empty if its provider speaks
    /// another dialect.
    supported_generation_methods: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_token_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_token_limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<bool>,
}

/// A model under the client's name for it.
struct ListedModel<'m> {
    id: &'m str,
    model: &'m Model,
    /// The maximum tokens of a prompt that all of the model's providers accept; `None` if a price
    /// does not state them. `max_output_tokens` is the same for a response.
    max_input_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    known: ModelCapabilities,
}

impl<'m> ListedModel<'m> {
    /// Reads the limits of `model` at `now` (Unix microseconds).
    fn new(id: &'m str, model: &'m Model, now: u64) -> Self {
        let prices = || {
            let targets = model.targets.iter();
            targets.map(move |target| target.price(&target.model_name_for(model, id).model, now))
        };
        ListedModel {
            id,
            model,
            max_input_tokens: min_if_all_known(prices().map(|price| price?.max_input_tokens)),
            max_output_tokens: min_if_all_known(prices().map(|price| price?.max_output_tokens)),
            known: ModelCapabilities::for_model(model, id),
        }
    }

    fn card(self) -> ModelCard<'m> {
        let target = self.model.targets.first();
        ModelCard {
            id: self.id,
            object: "model",
            created: 0,
            owned_by: target.map_or("", |target| &target.upstream.name),
            context_length: self.max_input_tokens,
            context_window: self.max_input_tokens,
            max_completion_tokens: self.max_output_tokens,
            capabilities: self.known.card(),
        }
    }

    fn info(self) -> ModelInfo<'m> {
        ModelInfo {
            r#type: "model",
            id: self.id,
            display_name: self.id,
            created_at: "1970-01-01T00:00:00Z",
            max_input_tokens: self.max_input_tokens,
            max_tokens: self.max_output_tokens,
            capabilities: self.known.info(),
        }
    }

    fn google_model(self) -> GoogleModel<'m> {
        let methods = [
            (Dialect::Gemini, "generateContent"),
            (Dialect::GeminiTokens, "countTokens"),
            (Dialect::GeminiEmbedding, "embedContent"),
        ];
        let served = methods
            .into_iter()
            .filter(|(dialect, _)| self.model.supports(*dialect));
        GoogleModel {
            name: format!("models/{}", self.id),
            display_name: self.id,
            supported_generation_methods: served.map(|(_, method)| method).collect(),
            input_token_limit: self.max_input_tokens,
            output_token_limit: self.max_output_tokens,
            thinking: self.known.capabilities.reasoning,
        }
    }
}

/// Returns the minimum of `numbers`; `None` if any of them is `None`.
fn min_if_all_known(mut numbers: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    let first = numbers.next()??;
    numbers.try_fold(first, |least, next| Some(least.min(next?)))
}

/// Returns the list of models that a tenant may use at `now` (Unix microseconds). Wildcards are named in a header line that
/// is added to `extra`.
pub fn list(catalog: &Catalog, tenant: &Tenant, family: Family, now: u64, extra: &mut Vec<u8>) -> Vec<u8> {
    let wildcards = catalog.wildcards_of(tenant);
    if !wildcards.is_empty() {
        // If a name cannot be written in a header field, the whole line is left out.
        let _ = encode::write_header(extra, "x-proofgate-wildcards", wildcards.join(", ").as_bytes());
    }
    let models = catalog.models_of(tenant);
    let ends = [models.first(), models.last()].map(|model| model.map(|(id, _)| *id));
    let models = models
        .into_iter()
        .map(|(id, model)| ListedModel::new(id, model, now));
    let json = match family {
        Family::Google => serde_json::to_vec(&GoogleModelList {
            models: models.map(ListedModel::google_model).collect(),
        }),
        Family::OpenAi | Family::Amazon => serde_json::to_vec(&ModelList {
            object: "list",
            data: models.map(ListedModel::card).collect(),
        }),
        Family::Anthropic => serde_json::to_vec(&ModelPage {
            data: models.map(ListedModel::info).collect(),
            has_more: false,
            first_id: ends[0],
            last_id: ends[1],
        }),
    };
    // Strings and numbers always serialise.
    json.unwrap_or_default()
}

/// Returns one model, if the tenant may use it.
pub fn get(
    catalog: &Catalog,
    tenant: &Tenant,
    name: &str,
    family: Family,
    now: u64,
) -> Result<Vec<u8>, Rejection> {
    // A route also exists for a name that a wildcard matches.
    let found = catalog
        .route(tenant, name)
        .filter(|model| model.prefix().is_none() || *model.name != *name);
    let found = ListedModel::new(name, found.ok_or(Rejection::UNKNOWN_MODEL)?, now);
    let json = match family {
        Family::OpenAi | Family::Amazon => serde_json::to_vec(&found.card()),
        Family::Google => serde_json::to_vec(&found.google_model()),
        Family::Anthropic => serde_json::to_vec(&found.info()),
    };
    Ok(json.unwrap_or_default())
}
