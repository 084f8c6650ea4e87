//! The models that a tenant may use, as OpenAI's `GET /v1/models` answers.

use proofgate_auth::Tenant;
use serde::Serialize;

use crate::catalog::Catalog;
use crate::rejection::Rejection;

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

fn card<'m>((id, owned_by): (&'m str, &'m str)) -> ModelCard<'m> {
    ModelCard {
        id,
        object: "model",
        created: 0,
        owned_by,
    }
}

/// The list of the models that a tenant may use, as OpenAI's `GET /v1/models` answers.
pub(crate) fn list(catalog: &Catalog, tenant: &Tenant) -> Vec<u8> {
    let list = ModelList {
        object: "list",
        data: catalog.models_of(tenant).into_iter().map(card).collect(),
    };
    // Strings and numbers always serialise.
    serde_json::to_vec(&list).unwrap_or_default()
}

/// One model, if the tenant may use it.
pub(crate) fn one(catalog: &Catalog, tenant: &Tenant, name: &str) -> Result<Vec<u8>, Rejection> {
    let found = catalog.models_of(tenant).into_iter().find(|(id, _)| *id == name);
    let found = found.ok_or(Rejection::UNKNOWN_MODEL)?;
    Ok(serde_json::to_vec(&card(found)).unwrap_or_default())
}
