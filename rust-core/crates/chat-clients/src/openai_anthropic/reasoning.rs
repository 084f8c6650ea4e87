use proofgate_dialect::json::write_all;
use proofgate_dialect::reasoning_details::Detail;

/// Writes a block of reasoning unchanged.
pub(super) fn write_detail(detail: &Detail<'_>, out: &mut Vec<u8>) {
    match detail {
        Detail::Text { fragments, signature } => {
            write_all(out, &["{\"type\":\"thinking\",\"thinking\":\""]);
            write_all(out, fragments);
            write_all(out, &["\",\"signature\":\"", signature.unwrap_or_default()]);
        }
        Detail::Encrypted(data) => write_all(out, &["{\"type\":\"redacted_thinking\",\"data\":\"", data]),
    }
    write_all(out, &["\"}"]);
}
