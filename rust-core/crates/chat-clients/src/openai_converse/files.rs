use std::collections::HashMap;

/// Maximum number of characters in the name of a document at Converse.
const MAX_NAME_CHARS: usize = 200;

/// The names of documents: Converse refuses a name that occurs twice in a request.
#[derive(Default)]
pub(super) struct DocumentNames {
    /// The number last assigned for each name.
    assigned: HashMap<String, u32>,
}

impl DocumentNames {
    /// Returns the name of a file without its extension and the characters that Converse refuses,
    /// with a number if it is already used.
    pub(super) fn unique_name(&mut self, file_name: &str) -> String {
        let stem = sanitize(file_name.rsplit_once('.').map_or(file_name, |(stem, _)| stem));
        let Some(mut number) = self.assigned.get(&stem).copied() else {
            self.assigned.insert(stem.clone(), 1);
            return stem;
        };
        let name = loop {
            number = number.saturating_add(1);
            let name = format!("{stem} ({number})");
            if !self.assigned.contains_key(&name) || number == u32::MAX {
                break name;
            }
        };
        self.assigned.insert(stem, number);
        self.assigned.insert(name.clone(), 1);
        name
    }
}

/// Keeps letters, digits, hyphens and brackets, with one space between words.
fn sanitize(stem: &str) -> String {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "-()[]".contains(char);
    let spaced: String = stem
        .chars()
        .map(|char| if is_allowed(char) { char } else { ' ' })
        .collect();
    let mut name = spaced.split_whitespace().collect::<Vec<_>>().join(" ");
    if name.is_empty() {
        name.push_str("document");
    }
    name.truncate(MAX_NAME_CHARS - " (4294967295)".len());
    name.truncate(name.trim_end().len());
    name
}
