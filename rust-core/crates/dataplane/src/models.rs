//! The models that a tenant may use, as `GET /v1/models` answers.

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
        Family::OpenAi | Family::Google | Family::Amazon => serde_json::to_vec(&ModelList {
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
    let found = catalog.models_of(tenant).into_iter().find(|(id, _)| *id == name);
    let found = found.ok_or(Rejection::UNKNOWN_MODEL)?;
    let json = match family {
        Family::OpenAi | Family::Google | Family::Amazon => serde_json::to_vec(&card(found)),
        Family::Anthropic => serde_json::to_vec(&info(found)),
    };
    Ok(json.unwrap_or_default())
}
