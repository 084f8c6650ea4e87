use std::collections::HashMap;

/// Characters that a document's name may have in Converse.
const LONGEST_NAME: usize = 200;

/// The media type and the base64 data of a `data:` URL (RFC 2397).
pub(super) fn data_url(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_at_checked(5)?;
    let (head, data) = rest.split_once(',')?;
    let media_type = head.strip_suffix(";base64")?;
    let media_type = media_type.split(';').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("data:").then_some((media_type, data))
}

/// Whether a text is base64 of at least a byte (RFC 4648, section 4), so that it may stand in a JSON string as it is.
pub(super) fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    !digits.is_empty()
        && text.len() - digits.len() <= 2
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() | (byte == b'+') | (byte == b'/'))
}

/// Converse's name of an image's media type.
pub(super) fn image_format(media_type: &str) -> Option<&'static str> {
    Some(match media_type.to_ascii_lowercase().as_str() {
        "image/png" => "png",
        "image/jpeg" | "image/jpg" => "jpeg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        _ => return None,
    })
}

/// Converse's name of a document's format, by its media type or else by the extension of its file.
pub(super) fn document_format(media_type: &str, file_name: &str) -> Option<&'static str> {
    let extension = file_name.rsplit_once('.').map(|(_, extension)| extension);
    document_media_type(media_type).or_else(|| document_extension(extension?))
}

fn document_media_type(media_type: &str) -> Option<&'static str> {
    Some(match media_type.to_ascii_lowercase().as_str() {
        "application/pdf" => "pdf",
        "text/csv" => "csv",
        "application/msword" => "doc",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document" => "docx",
        "application/vnd.ms-excel" => "xls",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" => "xlsx",
        "text/html" => "html",
        "text/plain" => "txt",
        "text/markdown" => "md",
        _ => return None,
    })
}

fn document_extension(extension: &str) -> Option<&'static str> {
    const FORMATS: [&str; 9] = ["pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"];
    FORMATS
        .into_iter()
        .find(|format| extension.eq_ignore_ascii_case(format))
}

/// Names of documents: Converse refuses one that stands twice in a request.
#[derive(Default)]
pub(super) struct DocumentNames {
    /// The number that each name was last given, one of its own.
    given: HashMap<String, u32>,
}

impl DocumentNames {
    /// How many names were given.
    pub(super) fn count(&self) -> usize {
        self.given.len()
    }

    /// The name of a file without its extension and without characters that Converse refuses, with a number if need be.
    pub(super) fn name(&mut self, file_name: &str) -> String {
        let stem = allowed(file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem));
        let Some(mut number) = self.given.get(&stem).copied() else {
            self.given.insert(stem.clone(), 1);
            return stem;
        };
        let name = loop {
            number = number.saturating_add(1);
            let name = format!("{stem} ({number})");
            if !self.given.contains_key(&name) || number == u32::MAX {
                break name;
            }
        };
        self.given.insert(stem, number);
        self.given.insert(name.clone(), 1);
        name
    }
}

/// Letters, digits, hyphens and brackets, with one blank between words.
fn allowed(stem: &str) -> String {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "-()[]".contains(char);
    let spaced: String = stem
        .chars()
        .map(|char| if is_allowed(char) { char } else { ' ' })
        .collect();
    let mut name = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() {
        name.push_str("document");
    }
    name.truncate(LONGEST_NAME - " (4294967295)".len());
    name.truncate(name.trim_end().len());
    name
}
