//! Tools that an answer may not call, because a text of a tool in its request reads like instructions.

use std::sync::Arc;

use proofgate_json::Workspace;
use proofgate_providers::{CalledTools, Dialect};

use crate::denial::Denial;

/// How many calls whose names may come in pieces an answer may have.
const MAX_OPEN_CALLS: usize = 4096;

/// Names of tools; one that ends with `*` stands for all that begin so.
///
/// A model may write another name than that of a tool, and clients repair it: they trim blanks, ignore case, take `-` for `_`
/// and `WriteFile` for `write_file` (anomalyco/opencode#24924, #31514, NousResearch/hermes-agent#15124). So case, blanks and
/// what separates words do not matter here either; before a `*`, only whether words are separated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardedTools(Vec<Entry>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    name: Box<str>,
    /// What a name has to be, or to begin with.
    folded: String,
    is_prefix: bool,
}

impl GuardedTools {
    /// Of these entries, in this order.
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

    /// The entries as they were given.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(|entry| &*entry.name)
    }

    /// The number of the first entry that stands for a tool.
    #[must_use]
    pub fn find(&self, tool: &str) -> Option<usize> {
        let (letters, words) = (strip_separators(tool), normalize_separators(tool));
        self.0.iter().position(|entry| match entry.is_prefix {
            true => words.starts_with(&entry.folded),
            false => entry.folded == letters,
        })
    }

    /// Whether a name that begins so can become one that an entry stands for.
    fn may_match(&self, begin: &str) -> bool {
        let (letters, words) = (strip_separators(begin), normalize_separators(begin));
        self.0.iter().any(|entry| match entry.is_prefix {
            true => entry.folded.starts_with(&words),
            false => entry.folded.starts_with(&letters),
        })
    }
}

/// Whether it separates words of a name, or nobody sees it.
fn is_separator(char: char) -> bool {
    matches!(
        char,
        '-' | '_' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'
    ) || char.is_whitespace()
        || char.is_control()
}

/// Whatever case it has: to upper case before, since some letters have the lower case of another one there alone.
fn fold_case(char: char) -> impl Iterator<Item = char> {
    char.to_uppercase().flat_map(char::to_lowercase)
}

/// A name without what stands between its words.
fn strip_separators(name: &str) -> String {
    let letters = name.chars().filter(|char| !is_separator(*char));
    letters.flat_map(fold_case).collect()
}

/// A name with one sign between two words, whatever stands there.
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

/// What a guard does with a call of a guarded tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardAction {
    /// The answer is not delivered, nor is what follows in a stream.
    Deny,
    /// It is noted only.
    Observe,
}

/// Looks in one answer for calls of guarded tools.
#[derive(Debug)]
pub struct CallGuard {
    approved_entries: Arc<GuardedTools>,
    /// By the numbers of their entries, those that may be called all the same.
    approved: Vec<bool>,
    action: GuardAction,
    reader: CalledTools,
    /// Calls whose names may come in pieces.
    open_calls: Vec<OpenCall>,
    guarded_call: Option<usize>,
    approved_call: Option<usize>,
}

#[derive(Debug)]
struct OpenCall {
    call: (u64, u64),
    /// What has come of its name, while that may still become the name of a guarded tool.
    name: Option<String>,
    /// Whether something has come that the tool is called with: its name is all there.
    has_arguments: bool,
}

impl OpenCall {
    /// The one with this index, or a new one.
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

    /// Takes a piece of the name; the entry of a guarded tool that it is now. Some clients join the pieces, some take the first or
    /// the last for the name. A piece behind a name that is whole may be that of another call: some providers give all calls the
    /// same index.
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
    /// One for the next answer. `approved`: the numbers of entries whose tools may be called.
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
            reader: CalledTools::default(),
            open_calls: Vec::new(),
            guarded_call: None,
            approved_call: None,
        }
    }

    /// The entry of the first guarded tool that was called and may not be.
    pub fn guarded_call(&self) -> Option<usize> {
        self.guarded_call
    }

    /// The entry of the first guarded tool that was called and may be.
    pub fn approved_call(&self) -> Option<usize> {
        self.approved_call
    }

    /// Whether what has come must not leave before the name of a call is complete.
    pub(crate) fn must_hold(&self) -> bool {
        let mut open = self.open_calls.iter();
        self.action == GuardAction::Deny && open.any(|call| call.name.is_some() && !call.has_arguments)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.reader.capacity() + self.open_calls.capacity() * size_of::<OpenCall>()
    }

    /// Looks at a document of the answer, which is JSON.
    ///
    /// # Errors
    /// [`Denial`]: a guarded tool is called, or more are than can be looked at.
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
                false => {
                    OpenCall::find_or_insert(open, called.call)?.push_name(piece, called.has_arguments, tools)
                }
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

    /// Takes note of the end of the answer: no name goes on.
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
