//! What a request must carry to be attributed to a tenant.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proofgate_auth::{Denial, Tenant, TenantTable, TenantTableError, hash_api_key};

fn tenant(name: &str) -> Tenant {
    Tenant {
        name: name.into(),
        models: None,
    }
}

fn table() -> TenantTable {
    TenantTable::new([
        (
            tenant("acme"),
            vec![hash_api_key(b"acme-key-one"), hash_api_key(b"acme-key-two")],
        ),
        (tenant("globex"), vec![hash_api_key(b"globex-key")]),
    ])
    .unwrap()
}

fn tenant_of(authorization: &str) -> Result<String, Denial> {
    let table = table();
    let (index, _) = table.authenticate(Some(authorization.as_bytes()))?;
    Ok(table.tenant(index).name.clone())
}

#[test]
fn every_key_of_a_tenant_names_that_tenant() {
    assert_eq!(tenant_of("Bearer acme-key-one").unwrap(), "acme");
    assert_eq!(tenant_of("bearer acme-key-two").unwrap(), "acme");
    assert_eq!(tenant_of("Bearer globex-key").unwrap(), "globex");
}

#[test]
fn a_missing_header_is_denied() {
    assert_eq!(table().authenticate(None).unwrap_err(), Denial::MissingKey);
}

#[test]
fn an_unknown_key_is_denied() {
    assert_eq!(tenant_of("Bearer acme-key-on").unwrap_err(), Denial::UnknownKey);
    assert_eq!(tenant_of("Bearer acme-key-onee").unwrap_err(), Denial::UnknownKey);
}

#[test]
fn anything_but_one_bearer_token_is_denied() {
    for value in [
        "",
        "Bearer",
        "Bearer ",
        "Basic YTpi",
        "Bearer a b",
        "Bearer a\tb",
        "acme-key-one",
    ] {
        assert_eq!(tenant_of(value).unwrap_err(), Denial::MalformedKey, "{value:?}");
    }
    assert_eq!(
        tenant_of(&format!("Bearer {}", "k".repeat(513))).unwrap_err(),
        Denial::MalformedKey
    );
}

#[test]
fn a_key_shared_by_two_tenants_is_refused() {
    let hash = hash_api_key(b"shared");
    let result = TenantTable::new([(tenant("a"), vec![hash]), (tenant("b"), vec![hash])]);
    assert_eq!(
        result.unwrap_err(),
        TenantTableError::SharedKey("a".into(), "b".into())
    );
}

#[test]
fn an_allow_list_is_exhaustive_and_its_absence_allows_all() {
    let limited = Tenant {
        name: "acme".into(),
        models: Some(vec!["small".into()]),
    };
    assert!(limited.may_use("small"));
    assert!(!limited.may_use("large"));
    assert!(tenant("acme").may_use("large"));
}
