//! Responses without generated text are recognized, and other documents are not mistaken for them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use proofgate_providers::{Dialect, DocumentKind};
use support::read;

const SILENT: [Dialect; 3] = [Dialect::Embeddings, Dialect::Moderations, Dialect::CountTokens];

#[test]
fn nothing_is_read_from_embeddings_moderations_and_counts() {
    let answers = [
        r#"{"object":"list","data":[{"object":"embedding","embedding":[0.1],"index":0}],"model":"m"}"#,
        r#"{"id":"modr_1","model":"m","results":[{"flagged":false,"categories":{"hate":false}}]}"#,
        r#"{"input_tokens":2095}"#,
    ];
    for (dialect, answer) in SILENT.into_iter().zip(answers) {
        assert_eq!(read(dialect, answer), (DocumentKind::Known, vec![]), "{answer}");
        let others = SILENT.into_iter().filter(|other| *other != dialect);
        for other in others {
            assert_eq!(read(other, answer), (DocumentKind::Other, vec![]), "{answer}");
        }
    }
}

#[test]
fn an_error_has_another_shape() {
    for dialect in SILENT {
        for error in [
            r#"{"error":{"message":"no"}}"#,
            r#"{"data":[],"results":[],"input_tokens":1,"error":"no"}"#,
            "[]",
        ] {
            assert_eq!(read(dialect, error), (DocumentKind::Other, vec![]), "{error}");
        }
        let without = r#"{"data":[],"results":[],"input_tokens":1,"error":null}"#;
        assert_eq!(read(dialect, without), (DocumentKind::Known, vec![]));
    }
}
