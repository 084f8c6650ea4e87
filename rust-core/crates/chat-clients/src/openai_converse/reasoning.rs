use proofgate_dialect::json::write_all;
use proofgate_dialect::reasoning_details::Detail;

/// Writes a block of reasoning unchanged.
pub(super) fn write_detail(detail: &Detail<'_>, out: &mut Vec<u8>) {
    match detail {
        Detail::Text { fragments, signature } => {
            write_all(out, &[r#"{"reasoningContent":{"reasoningText":{"text":""#]);
            write_all(out, fragments);
            if let Some(signature) = signature {
                write_all(out, &[r#"","signature":""#, signature]);
            }
            write_all(out, &[r#""}}}"#]);
        }
        Detail::Encrypted(data) => {
            write_all(
                out,
                &[r#"{"reasoningContent":{"redactedContent":""#, data, r#""}}"#],
            );
        }
    }
}
