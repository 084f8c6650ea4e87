//! Cache points, which end a prefix that may be cached.

use serde_json::value::RawValue;

use proofgate_dialect::json::write_all;
use proofgate_dialect::object::{UnescapedString, object};

object! {
    /// Anthropic's mark for a prefix that may be cached, which clients send to OpenAI's API too.
    CacheControl { ttl: UnescapedString<'b> }
}

/// Returns the lifetime of a cached prefix, as a field of a cache point.
pub(super) fn ttl(control: Option<&RawValue>) -> &'static str {
    let control: Option<CacheControl<'_>> =
        control.and_then(|control| serde_json::from_str(control.get()).ok());
    match control.and_then(|control| control.ttl).as_deref() {
        Some("5m") => r#","ttl":"5m""#,
        Some("1h") => r#","ttl":"1h""#,
        _ => "",
    }
}

/// Writes a cache point.
pub(super) fn write_cache_point(ttl: &str, out: &mut Vec<u8>) {
    write_all(out, &[r#"{"cachePoint":{"type":"default""#, ttl, "}}"]);
}
