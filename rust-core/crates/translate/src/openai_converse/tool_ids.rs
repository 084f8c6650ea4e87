use std::borrow::Cow;

use crate::openai_converse::text::fnv1a;

/// Bytes that the id of a tool call may have in Converse.
const LONGEST: usize = 64;
/// Of these, a hyphen and the hexadecimal digits of a hash.
const HASH: usize = 17;

/// A tool call's id as Converse allows it (`[a-zA-Z0-9_.:-]{1,64}`): itself if it can be, else always the same other one.
pub(super) fn tool_use_id(id: &str) -> Cow<'_, str> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte);
    if !id.is_empty() && id.len() <= LONGEST && id.bytes().all(allowed) {
        return Cow::Borrowed(id);
    }
    let mut replaced: String = id
        .bytes()
        .filter(|byte| allowed(*byte))
        .take(LONGEST - HASH)
        .map(char::from)
        .collect();
    replaced += &format!("-{:016x}", fnv1a(id.bytes()));
    Cow::Owned(replaced)
}
