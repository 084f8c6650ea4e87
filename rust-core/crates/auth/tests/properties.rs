//! Properties that hold for every header.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::sync::LazyLock;

use proofgate_auth::{ApiKeyHeaders, AuthError, Shards};
use proptest::prelude::*;
use support::{FIELDS, NOW, authenticate, authenticator, authorization, claims, token, with};

static TOKEN: LazyLock<String> = LazyLock::new(|| token(&claims()));

/// Generates a fragment of an `Authorization` value.
fn fragment() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"Bearer ".to_vec()),
        Just(b"bEARER ".to_vec()),
        Just(b"acme-key".to_vec()),
        Just(b"eyJhbGciOiJFUzI1NiJ9".to_vec()),
        Just(b".".to_vec()),
        Just(TOKEN.clone().into_bytes()),
        prop::collection::vec(any::<u8>(), 0..8),
    ]
}

/// Generates a field value.
fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"acme-key".to_vec()),
        Just(b"Bearer acme-key".to_vec()),
        Just(b"acme.v2.key".to_vec()),
        Just(b"Bearer acme.v2.key".to_vec()),
        Just(b"nobodys-key".to_vec()),
        prop::collection::vec(any::<u8>(), 0..4),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn only_a_scheme_a_space_and_a_known_credential_are_accepted(
        fragments in prop::collection::vec(fragment(), 0..6),
        now in prop_oneof![Just(NOW), any::<u64>()],
    ) {
        let value = fragments.concat();
        if authenticator().authenticate(&Shards::default(), &authorization(&value), now).is_ok() {
            let (scheme, credential) = value.split_at(7);
            prop_assert!(scheme.eq_ignore_ascii_case(b"bearer "));
            prop_assert!(credential == b"acme-key" || credential == TOKEN.as_bytes());
        }
    }

    #[test]
    fn several_fields_are_accepted_if_each_alone_is_and_all_say_the_same(
        values in prop::array::uniform4(prop::option::of(value())),
    ) {
        let authenticator = authenticator();
        let ask = |fields: &ApiKeyHeaders<'_>| authenticator.authenticate(&Shards::default(), fields, NOW);
        let sent: Vec<_> = FIELDS
            .into_iter()
            .zip(&values)
            .filter_map(|(field, value)| Some((field, value.as_deref()?)))
            .collect();
        let alone: Vec<_> = sent
            .iter()
            .map(|(field, value)| ask(&with(*field, value, ApiKeyHeaders::default())))
            .collect();
        let key_of = |value: &[u8]| value.strip_prefix(b"Bearer ").unwrap_or(value).to_vec();
        let malformed = alone.iter().any(|found| matches!(found, Err(AuthError::MalformedKey(_))));
        let one = sent.windows(2).all(|pair| key_of(pair[0].1) == key_of(pair[1].1));
        let together = ask(&sent.iter().fold(ApiKeyHeaders::default(), |fields, (field, value)| with(*field, value, fields)));
        match together {
            Err(AuthError::MissingKey) => prop_assert!(sent.is_empty()),
            Err(AuthError::MalformedKey(_)) => prop_assert!(malformed),
            Err(AuthError::AmbiguousKey(..)) => prop_assert!(!one),
            found => {
                prop_assert!(one && !malformed);
                prop_assert!(alone.iter().all(|one| *one == found));
            }
        }
    }

    #[test]
    fn a_token_with_one_byte_changed_is_refused(at in any::<prop::sample::Index>(), byte in 0x21..0x7f_u8) {
        let mut changed = TOKEN.clone().into_bytes();
        let at = at.index(changed.len());
        prop_assume!(changed[at] != byte);
        changed[at] = byte;
        let changed = String::from_utf8(changed).unwrap();
        prop_assert!(authenticate(&authenticator(), &changed).is_err());
    }

    #[test]
    fn a_cut_token_is_refused(length in any::<prop::sample::Index>()) {
        prop_assert!(authenticate(&authenticator(), &TOKEN[..length.index(TOKEN.len())]).is_err());
    }

    #[test]
    fn any_key_set_text_is_read_or_refused(text in r#"(\{|\}|\[|\]|"keys":|"kty":"RSA"|"n":"|"e":"AQAB"|,|"|[a-z]){0,24}"#) {
        if let Ok((set, _)) = proofgate_auth::KeySet::parse(&text) {
            prop_assert!(set.is_empty());
        }
    }
}
