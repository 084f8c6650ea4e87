//! The models that a tenant may use, as `GET /v1/models` and `GET /v1beta/models` answer.

use proofgate_auth::Tenant;
use proofgate_providers::Family;
use serde::Serialize;

use crate::catalog::Catalog;
use crate::rejection::Rejection;

/// The list as OpenAI's API has it.
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
}

/// The list as Anthropic's API has it, in one page.
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
}

/// The list as Google's API has it, in one page.
#[derive(Serialize)]
struct GoogleModelList<'m> {
    models: Vec<GoogleModel<'m>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GoogleModel<'m> {
    name: String,
    display_name: &'m str,
    /// What can be asked of it in this dialect: nothing, where its provider speaks another one.
    supported_generation_methods: &'static [&'static str],
}

fn google_model<'m>(catalog: &Catalog, tenant: &Tenant, id: &'m str) -> GoogleModel<'m> {
    let model = catalog.route(tenant, id);
    let mut targets = model.iter().flat_map(|model| &model.targets);
    GoogleModel {
        name: format!("models/{id}"),
        display_name: id,
        supported_generation_methods: match targets.any(|target| target.upstream.family == Family::Google) {
            true => &["generateContent", "countTokens", "embedContent"],
            false => &[],
        },
    }
}

fn card<'m>((id, owned_by): (&'m str, &'m str)) -> ModelCard<'m> {
    ModelCard {
        id,
        object: "model",
        created: 0,
        owned_by,
    }
}

fn info<'m>((id, _): (&'m str, &'m str)) -> ModelInfo<'m> {
    ModelInfo {
        r#type: "model",
        id,
        display_name: id,
        created_at: "1970-01-01T00:00:00Z",
    }
}

/// The list of the models that a tenant may use.
pub(crate) fn list(catalog: &Catalog, tenant: &Tenant, family: Family) -> Vec<u8> {
    let models = catalog.models_of(tenant);
    let json = match family {
        Family::Google => serde_json::to_vec(&GoogleModelList {
            models: models
                .into_iter()
                .map(|(id, _)| google_model(catalog, tenant, id))
                .collect(),
        }),
        Family::OpenAi | Family::Amazon => serde_json::to_vec(&ModelList {
            object: "list",
            data: models.into_iter().map(card).collect(),
        }),
        Family::Anthropic => serde_json::to_vec(&ModelPage {
            first_id: models.first().map(|(id, _)| *id),
            last_id: models.last().map(|(id, _)| *id),
            data: models.into_iter().map(info).collect(),
            has_more: false,
        }),
    };
    // Strings and numbers always serialise.
    json.unwrap_or_default()
}

/// One model, if the tenant may use it.
pub(crate) fn one(
    catalog: &Catalog,
    tenant: &Tenant,
    name: &str,
    family: Family,
) -> Result<Vec<u8>, Rejection> {
    // Also one that a wildcard stands for.
    let found = catalog
        .route(tenant, name)
        .filter(|model| model.prefix().is_none() || *model.name != *name);
    let target = found.and_then(|model| model.targets.first());
    let target = target.ok_or(Rejection::UNKNOWN_MODEL)?;
    let found = (name, target.upstream.name.as_str());
    let json = match family {
        Family::OpenAi | Family::Amazon => serde_json::to_vec(&card(found)),
        Family::Google => serde_json::to_vec(&google_model(catalog, tenant, found.0)),
        Family::Anthropic => serde_json::to_vec(&info(found)),
    };
    Ok(json.unwrap_or_default())
}
