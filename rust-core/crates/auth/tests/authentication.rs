//! Attribution of a request to a tenant, and the tenant's permissions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::collections::HashMap;

use proofgate_auth::{
    AllowList, ApiKey, ApiKeyHeaders, AuthError, Authenticator, Credential, Endpoint, Error, KeyHeader,
    Shards, TenantTable, hash_api_key,
};
use support::{NOW, authenticate, authenticate_at, authorization, tenant};

fn authenticator() -> Authenticator {
    let key = |text: &str| ApiKey::from(hash_api_key(text.as_bytes()));
    let ending = ApiKey {
        expires_at: Some(NOW + 10),
        ..key("acme-key-ending")
    };
    let tenants = TenantTable::new([
        (
            tenant("acme"),
            vec![key("acme-key-one"), key("acme-key-two"), ending],
        ),
        (tenant("globex"), vec![key("globex-key")]),
        (tenant("initech"), vec![]),
    ]);
    Authenticator::new(tenants.unwrap(), HashMap::new(), vec![]).unwrap()
}

fn tenant_of(value: &str) -> Result<String, AuthError> {
    let authenticator = authenticator();
    let fields = authorization(value.as_bytes());
    let identity = authenticator.authenticate(&Shards::default(), &fields, NOW)?;
    Ok(identity.tenant.name.to_string())
}

#[test]
fn every_key_of_a_tenant_names_that_tenant() {
    assert_eq!(tenant_of("Bearer acme-key-one").unwrap(), "acme");
    assert_eq!(tenant_of("bearer acme-key-two").unwrap(), "acme");
    assert_eq!(tenant_of("BEARER acme-key-ending").unwrap(), "acme");
    assert_eq!(tenant_of("Bearer globex-key").unwrap(), "globex");
}

#[test]
fn an_api_key_is_identified_by_its_digest() {
    let identity = authenticate(&authenticator(), "globex-key").unwrap();
    assert_eq!(
        identity.credential,
        Credential::ApiKey(hash_api_key(b"globex-key"))
    );
    assert_eq!(identity.credential.digest(), &hash_api_key(b"globex-key"));
}

#[test]
fn an_api_key_has_the_name_that_the_configuration_gives_it_and_a_nameless_one_has_none() {
    let named = ApiKey {
        name: Some("ci".into()),
        ..ApiKey::from(hash_api_key(b"acme-key-ci"))
    };
    let nameless = ApiKey::from(hash_api_key(b"acme-key"));
    let tenants = TenantTable::new([(tenant("acme"), vec![named, nameless])]).unwrap();
    let authenticator = Authenticator::new(tenants, HashMap::new(), vec![]).unwrap();
    let name = |key| authenticate(&authenticator, key).unwrap().key_name;
    assert_eq!(name("acme-key-ci").as_deref(), Some("ci"));
    assert_eq!(name("acme-key"), None);
}

#[test]
fn a_request_without_any_field_for_a_key_is_denied() {
    assert_eq!(
        authenticator()
            .authenticate(&Shards::default(), &ApiKeyHeaders::default(), NOW)
            .unwrap_err(),
        AuthError::MissingKey
    );
}

#[test]
fn an_unknown_key_is_denied() {
    for key in ["acme-key-on", "acme-key-onee", "a.b.c"] {
        assert_eq!(
            tenant_of(&format!("Bearer {key}")).unwrap_err(),
            AuthError::UnknownKey,
            "{key}"
        );
    }
}

#[test]
fn a_key_is_denied_from_its_end_on_and_the_others_are_not() {
    let authenticator = authenticator();
    assert!(authenticate_at(&authenticator, "acme-key-ending", NOW + 9).is_ok());
    for now in [NOW + 10, NOW + 11, u64::MAX] {
        let denial = authenticate_at(&authenticator, "acme-key-ending", now).unwrap_err();
        assert_eq!(denial, AuthError::ExpiredKey);
        assert_eq!((denial.status(), denial.code()), (401, "expired_api_key"));
        assert!(authenticate_at(&authenticator, "acme-key-one", now).is_ok());
    }
}

#[test]
fn anything_but_one_bearer_token_is_denied() {
    for value in [
        "",
        "Bearer",
        "Bearer ",
        "Bearer  acme-key-one",
        "Bearer acme-key-one ",
        "Basic YTpi",
        "Bearer a b",
        "Bearer a\tb",
        "Bearer caf\u{e9}",
        "acme-key-one",
    ] {
        assert_eq!(
            tenant_of(value).unwrap_err(),
            AuthError::MalformedKey(KeyHeader::Authorization),
            "{value:?}"
        );
    }
    let long = |length| tenant_of(&format!("Bearer {}", "k".repeat(length))).unwrap_err();
    assert_eq!(long(512), AuthError::UnknownKey);
    assert_eq!(long(513), AuthError::MalformedKey(KeyHeader::Authorization));
}

#[test]
fn a_key_shared_by_two_tenants_is_refused() {
    let key = ApiKey::from(hash_api_key(b"shared"));
    let result = TenantTable::new([(tenant("a"), vec![key.clone()]), (tenant("b"), vec![key])]);
    assert_eq!(
        result.unwrap_err(),
        Error::DuplicateKeyAcrossTenants("a".into(), "b".into())
    );
}

#[test]
fn a_key_given_twice_is_refused_even_with_another_end() {
    let key = ApiKey::from(hash_api_key(b"twice"));
    let ending = ApiKey {
        expires_at: Some(1),
        ..key.clone()
    };
    let result = TenantTable::new([(tenant("a"), vec![key, ending])]);
    assert_eq!(result.unwrap_err(), Error::DuplicateKey("a".into()));
}

#[test]
fn a_tenant_given_twice_is_refused() {
    let result = TenantTable::new([(tenant("a"), vec![]), (tenant("a"), vec![])]);
    assert_eq!(result.unwrap_err(), Error::DuplicateTenant("a".into()));
}

#[test]
fn every_key_of_a_large_table_is_found() {
    let names: Vec<String> = (0..2000).map(|index| format!("tenant-{index}")).collect();
    let key = |name: &String| ApiKey::from(hash_api_key(name.as_bytes()));
    let table = TenantTable::new(names.iter().map(|name| (tenant(name), vec![key(name)]))).unwrap();
    for name in &names {
        let (tenant, key_name) = table.owner(&hash_api_key(name.as_bytes()), NOW).unwrap();
        assert_eq!(key_name, None);
        assert_eq!(*tenant.name, **name);
        assert_eq!(table.find(name), Some(tenant));
    }
    assert_eq!(table.iter().count(), 2000);
    assert_eq!(table.find("tenant-2000"), None);
}

#[test]
fn keys_whose_digests_begin_alike_are_told_apart() {
    let alike = |last: u8| {
        let mut hash = [7; 32];
        hash[31] = last;
        hash
    };
    let owned = |last| vec![ApiKey::from(alike(last))];
    let table = TenantTable::new([(tenant("a"), owned(1)), (tenant("b"), owned(2))]).unwrap();
    assert_eq!(table.owner(&alike(1), NOW), Ok((&tenant("a"), None)));
    assert_eq!(table.owner(&alike(2), NOW), Ok((&tenant("b"), None)));
    assert_eq!(table.owner(&alike(3), NOW), Err(AuthError::UnknownKey));
}

#[test]
fn an_allow_list_is_exhaustive_and_its_absence_allows_all() {
    let limited = AllowList {
        models: Some(vec!["small".into()]),
        endpoints: Some(vec![Endpoint::ChatCompletions]),
        ..AllowList::default()
    };
    assert!(limited.allows_model("small"));
    assert!(!limited.allows_model("large"));
    assert!(limited.allows_endpoint(Endpoint::ChatCompletions));
    assert!(!limited.allows_endpoint(Endpoint::Models));
    let empty = AllowList {
        models: Some(vec![]),
        endpoints: Some(vec![]),
        ..AllowList::default()
    };
    for endpoint in Endpoint::ALL {
        assert!(!empty.allows_endpoint(endpoint), "{}", endpoint.as_str());
        assert!(AllowList::default().allows_endpoint(endpoint));
    }
    assert!(!empty.allows_model("small"));
    assert!(AllowList::default().allows_model("large"));
}

#[test]
fn a_denial_tells_clients_what_kind_of_credential_would_help() {
    let field = |denial: AuthError| denial.www_authenticate();
    assert_eq!(field(AuthError::MissingKey), r#"Bearer realm="proofgate""#);
    let malformed = AuthError::MalformedKey(KeyHeader::ApiKey);
    assert!(field(malformed).ends_with(r#"error="invalid_request""#));
    let ambiguous = AuthError::AmbiguousKey(KeyHeader::ApiKey, KeyHeader::XApiKey);
    assert!(field(ambiguous).ends_with(r#"error="invalid_request""#));
    assert!(field(AuthError::ExpiredKey).ends_with(r#"error="invalid_token""#));
    assert!(field(AuthError::InvalidSignature).ends_with(r#"error="invalid_token""#));
    assert!(field(AuthError::EndpointNotAllowed).ends_with(r#"error="insufficient_scope""#));
    assert_eq!(AuthError::EndpointNotAllowed.status(), 403);
    assert_eq!(AuthError::EndpointNotAllowed.code(), "endpoint_not_allowed");
}

#[test]
fn what_identifies_a_key_is_not_printed_whole() {
    let identity = authenticate(&authenticator(), "globex-key").unwrap();
    let printed = format!("{:?}", identity.credential);
    assert!(printed.starts_with("ApiKey("), "{printed}");
    assert_eq!(printed.len(), "ApiKey(01234567)".len());
}
