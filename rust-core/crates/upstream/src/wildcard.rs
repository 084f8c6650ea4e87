//! Wildcard names, which match all models with a prefix.

/// Maximum length of a model name, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The character at the end of a model's name that matches the rest of a requested name.
pub(crate) const WILDCARD: char = '*';

/// Returns the client's name for a model whose name at the provider is `there`. `name` and
/// `upstream_model` are the configured names of the model, both with a [`WILDCARD`]. This is the
/// inverse of [`Target::model_name_for`](crate::routes::Target::model_name_for).
pub(crate) fn client_name(name: &str, upstream_model: &str, there: &str) -> Option<String> {
    let prefix = name.strip_suffix(WILDCARD)?;
    let (before, after) = upstream_model.split_once(WILDCARD)?;
    let rest = there.strip_prefix(before)?.strip_suffix(after)?;
    let asked = [prefix, rest].concat();
    matches_wildcard(name, &asked).then_some(asked)
}

/// Whether the wildcard `name` matches the name `asked`, which must be printable ASCII without
/// quotes, as in a configuration.
pub(crate) fn matches_wildcard(name: &str, asked: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'*');
    let prefix = name.strip_suffix(WILDCARD);
    let rest = prefix.and_then(|prefix| asked.strip_prefix(prefix));
    // A name of only dots would be a dot segment in a path that names the model.
    let is_name = |rest: &str| rest.bytes().all(plain) && rest.bytes().any(|byte| byte != b'.');
    asked.len() <= MAX_NAME_BYTES && rest.is_some_and(is_name)
}
