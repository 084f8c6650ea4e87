//! Reads response documents.
#![allow(dead_code, reason = "each test file uses only some of these helpers")]

use proofgate_json::Workspace;
use proofgate_providers::{Dialect, DocumentKind, GeneratedText};

/// Returns the shape of a document, and the keys and values of its parts.
pub fn read(dialect: Dialect, document: &str) -> (DocumentKind, Vec<(String, String)>) {
    let mut generated = GeneratedText::new();
    let shape = generated
        .read(dialect, document.as_bytes(), &mut Workspace::new())
        .unwrap();
    let parts = generated.parts().iter().map(|part| {
        let mut key = String::new();
        generated.write_key(part, &mut key);
        (key, generated.value(part).to_owned())
    });
    (shape, parts.collect())
}

/// Returns the fragments among the parts, which later events may continue.
pub fn pieces(dialect: Dialect, document: &str) -> Vec<(String, String)> {
    let mut generated = GeneratedText::new();
    generated
        .read(dialect, document.as_bytes(), &mut Workspace::new())
        .unwrap();
    let parts = generated.parts().iter().filter(|part| !part.is_complete);
    let pieces = parts.map(|part| {
        let mut key = String::new();
        generated.write_key(part, &mut key);
        (key, generated.value(part).to_owned())
    });
    pieces.collect()
}

/// Returns the indices that an event finishes.
pub fn finished(dialect: Dialect, document: &str) -> Vec<u64> {
    let mut generated = GeneratedText::new();
    generated
        .read(dialect, document.as_bytes(), &mut Workspace::new())
        .unwrap();
    generated.finished().collect()
}

pub fn keyed(parts: &[(&str, &str)]) -> Vec<(String, String)> {
    parts
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}
