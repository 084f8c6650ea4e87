//! Tools that a response may not call, because a tool text in its request reads like instructions.

use std::sync::Arc;

use proofgate_json::Workspace;
use proofgate_providers::{Dialect, ToolCalls};

use crate::denial::Denial;

/// Maximum number of calls in a response whose names may still be incomplete.
const MAX_OPEN_CALLS: usize = 4096;

/// Names of tools; an entry that ends with `*` matches all names with that prefix.
///
/// A model may write a tool's name differently, and clients repair it: they trim blanks, ignore case, and treat `-` as `_`
/// and `WriteFile` as `write_file` (anomalyco/opencode#24924, #31514, NousResearch/hermes-agent#15124). Matching therefore
/// ignores case, blanks and word separators; before a `*`, it only ignores which separator is used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardedTools(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: Box<str>,
    /// The folded name or prefix.
    folded: String,
    is_prefix: bool,
}

impl GuardedTools {
    /// Creates a list of these entries, in this order.
    pub fn new<'n>(entries: impl IntoIterator<Item = &'n str>) -> Self {
        let entry = |name: &'n str| match name.strip_suffix('*') {
            Some(begin) => Entry {
                name: name.into(),
                folded: normalize_separators(begin),
                is_prefix: true,
            },
            None => Entry {
                name: name.into(),
                folded: strip_separators(name),
                is_prefix: false,
            },
        };
        Self(entries.into_iter().map(entry).collect())
    }

    /// Returns the entries as they were passed to [`GuardedTools::new`].
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|entry| &*entry.name)
    }

    /// Returns the index of the first entry that matches a tool.
    #[must_use]
    pub fn find(&self, tool: &str) -> Option<usize> {
        let (letters, words) = (strip_separators(tool), normalize_separators(tool));
        self.0.iter().position(|entry| match entry.is_prefix {
            true => words.starts_with(&entry.folded),
            false => entry.folded == letters,
        })
    }

    /// Whether a name with this beginning can become one that an entry matches.
    fn may_match(&self, begin: &str) -> bool {
        let (letters, words) = (strip_separators(begin), normalize_separators(begin));
        self.0.iter().any(|entry| match entry.is_prefix {
            true => entry.folded.starts_with(&words),
            false => entry.folded.starts_with(&letters),
        })
    }
}

/// Whether the character separates words of a name, or is invisible.
fn is_separator(char: char) -> bool {
    matches!(
        char,
        '-' | '_' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'
    ) || char.is_whitespace()
        || char.is_control()
}

/// Folds the case of a character. It is upper-cased first, because some letters share their lower case with another letter
/// only then.
fn fold_case(char: char) -> impl Iterator<Item = char> {
    char.to_uppercase().flat_map(char::to_lowercase)
}

/// Returns a name without separators between its words.
fn strip_separators(name: &str) -> String {
    let letters = name.chars().filter(|char| !is_separator(*char));
    letters.flat_map(fold_case).collect()
}

/// Returns a name with a single `_` for each sequence of separators.
fn normalize_separators(name: &str) -> String {
    let name = name.trim_start_matches(|char| is_separator(char) && !matches!(char, '-' | '_'));
    let mut words = String::new();
    for char in name.chars() {
        match is_separator(char) {
            true if words.ends_with('_') => {}
            true => words.push('_'),
            false => words.extend(fold_case(char)),
        }
    }
    words
}

/// The action of a guard on a call of a guarded tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardAction {
    /// The response, or the rest of a stream, is not delivered.
    Deny,
    /// The call is only recorded.
    Observe,
}

/// Checks one response for calls of guarded tools.
#[derive(Debug)]
pub struct CallGuard {
    approved_entries: Arc<GuardedTools>,
    /// For each entry, whether its tools may be called anyway.
    approved: Vec<bool>,
    action: GuardAction,
    reader: ToolCalls,
    /// Calls whose names may still be incomplete.
    open_calls: Vec<OpenCall>,
    guarded_call: Option<usize>,
    approved_call: Option<usize>,
}

#[derive(Debug)]
struct OpenCall {
    call: (u64, u64),
    /// The part of its name received so far, while it can still become the name of a guarded tool.
    name: Option<String>,
    /// Whether arguments have been received, which means that the name is complete.
    has_arguments: bool,
}

impl OpenCall {
    /// Returns the call with this index, creating it if necessary.
    fn find_or_insert(open: &mut Vec<OpenCall>, call: (u64, u64)) -> Result<&mut OpenCall, Denial> {
        let place = open.iter().position(|known| known.call == call);
        let place = place.unwrap_or(open.len());
        if place == open.len() {
            if place == MAX_OPEN_CALLS {
                return Err(Denial::TooLarge);
            }
            open.push(OpenCall {
                call,
                name: Some(String::new()),
                has_arguments: false,
            });
        }
        Ok(&mut open[place])
    }

    /// Adds a piece of the name; returns the entry of the guarded tool that the name now matches. Some clients join the
    /// pieces, some use the first or the last as the name. A piece after a complete name may belong to another call: some
    /// providers give all calls the same index.
    fn push_name(&mut self, piece: &str, has_arguments: bool, tools: &GuardedTools) -> Option<usize> {
        let alone = tools.find(piece);
        let may_be_another = self.name.is_none() || self.has_arguments;
        if piece.is_empty() && self.name.is_none() {
            return alone;
        }
        let begins = self.name.is_none();
        let name = self.name.take().unwrap_or_default() + piece;
        let entry = tools.find(&name).or(alone);
        let (name, begins) = match entry {
            Some(_) => (None, begins),
            None if tools.may_match(&name) => (Some(name), begins),
            None if may_be_another && tools.may_match(piece) => (Some(piece.to_owned()), true),
            None => (None, begins),
        };
        self.name = name;
        self.has_arguments = has_arguments || (self.has_arguments && !begins);
        entry
    }
}

impl CallGuard {
    /// Creates a guard for the next response. `approved`: the indices of entries whose tools may be called.
    pub fn new(
        tools: Arc<GuardedTools>,
        approved: impl IntoIterator<Item = usize>,
        action: GuardAction,
    ) -> Self {
        let mut may = vec![false; tools.0.len()];
        for entry in approved {
            if let Some(may) = may.get_mut(entry) {
                *may = true;
            }
        }
        Self {
            approved_entries: tools,
            approved: may,
            action,
            reader: ToolCalls::default(),
            open_calls: Vec::new(),
            guarded_call: None,
            approved_call: None,
        }
    }

    /// Returns the entry of the first guarded tool that was called without approval.
    pub fn guarded_call(&self) -> Option<usize> {
        self.guarded_call
    }

    /// Returns the entry of the first guarded tool that was called with approval.
    pub fn approved_call(&self) -> Option<usize> {
        self.approved_call
    }

    /// Whether received data has to be held until the name of a call is complete.
    pub(crate) fn must_buffer(&self) -> bool {
        let mut open = self.open_calls.iter();
        self.action == GuardAction::Deny && open.any(|call| call.name.is_some() && !call.has_arguments)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.reader.capacity() + self.open_calls.capacity() * size_of::<OpenCall>()
    }

    /// Checks a document of the response, which is JSON.
    ///
    /// # Errors
    /// [`Denial`]: a guarded tool is called, there are too many open calls, or the document is not valid JSON.
    pub(crate) fn inspect_document(
        &mut self,
        dialect: Dialect,
        document: &[u8],
        workspace: &mut Workspace,
    ) -> Result<(), Denial> {
        let Self {
            approved_entries: tools,
            approved,
            reader,
            open_calls: open,
            guarded_call,
            approved_call,
            ..
        } = self;
        reader
            .read(dialect, document, workspace)
            .map_err(|_| Denial::Malformed)?;
        for (called, piece) in reader.calls() {
            let entry = match called.is_complete {
                true => tools.find(piece),
                false => OpenCall::find_or_insert(open, called.call_index)?.push_name(
                    piece,
                    called.has_arguments,
                    tools,
                ),
            };
            let Some(entry) = entry else { continue };
            match approved[entry] {
                true => approved_call.get_or_insert(entry),
                false => guarded_call.get_or_insert(entry),
            };
        }
        let finished = reader.finished();
        open.retain(|known| !finished.contains(&known.call.0));
        match (self.action, self.guarded_call) {
            (GuardAction::Deny, Some(_)) => Err(Denial::GuardedCall),
            _ => Ok(()),
        }
    }

    /// Ends the response: incomplete names are dropped.
    pub(crate) fn finish(&mut self) {
        self.open_calls.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stands_for_a_name_or_for_all_that_begin_so_however_they_are_written() {
        let tools = GuardedTools::new(["Bash", "mcp__github__*", "write_file"]);
        for (name, entry) in [
            ("Bash", Some(0)),
            ("bash", Some(0)),
            ("BashOutput", None),
            ("Bas", None),
            ("", None),
            ("mcp__github__push", Some(1)),
            ("MCP__GitHub__", Some(1)),
            (" mcp_github-push", Some(1)),
            ("mcp__github", None),
            ("mcp__github2__push", None),
            ("mcp__gitlab__push", None),
            ("mcpgithubpush", None),
            (" bash\n", Some(0)),
            ("\u{feff}Ba\u{200b}sh", Some(0)),
            ("BA\u{17f}H", Some(0)),
            ("WriteFile", Some(2)),
            ("write-file ", Some(2)),
            ("write file", Some(2)),
            ("write_files", None),
            ("Баsh", None),
        ] {
            assert_eq!(tools.find(name), entry, "{name}");
        }
        assert_eq!(GuardedTools::new(["*"]).find(""), Some(0));
        for (begin, may) in [
            ("", true),
            ("B", true),
            ("bAS", true),
            ("mcp__", true),
            (" mcp-git", true),
            ("Write", true),
            ("mcp__gitlab", false),
            ("Read", false),
        ] {
            assert_eq!(tools.may_match(begin), may, "{begin}");
        }
    }
}
