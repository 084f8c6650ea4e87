//! Tools that an answer may not call, because a text of a tool in its request reads like instructions.

use std::sync::Arc;

use proofgate_json::Workspace;
use proofgate_providers::{CalledTools, Dialect};

use crate::denial::Denial;

/// How many calls whose names may come in pieces an answer may have.
const MOST_CALLS: usize = 4096;

/// Names of tools; one that ends with `*` stands for all that begin so. Case does not matter, since some clients repair it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardedTools(Vec<Box<str>>);

impl GuardedTools {
    /// Of these entries, in this order.
    pub fn new<'n>(entries: impl IntoIterator<Item = &'n str>) -> Self {
        Self(entries.into_iter().map(Into::into).collect())
    }

    /// The entries as they were given.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// The number of the first entry that stands for a tool.
    #[must_use]
    pub fn find(&self, tool: &str) -> Option<usize> {
        self.entries().position(|entry| match entry.strip_suffix('*') {
            Some(begin) => begins_with(tool, begin),
            None => entry.eq_ignore_ascii_case(tool),
        })
    }

    /// Whether a name that begins so can become one that an entry stands for.
    fn may_become(&self, begin: &str) -> bool {
        self.entries()
            .any(|entry| begins_with(entry.strip_suffix('*').unwrap_or(entry), begin))
    }
}

fn begins_with(name: &str, begin: &str) -> bool {
    let start = name.as_bytes().get(..begin.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(begin.as_bytes()))
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
    tools: Arc<GuardedTools>,
    /// By the numbers of their entries, those that may be called all the same.
    approved: Vec<bool>,
    action: GuardAction,
    reader: CalledTools,
    /// Calls whose names may come in pieces.
    open: Vec<OpenCall>,
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
    fn of(open: &mut Vec<OpenCall>, call: (u64, u64)) -> Result<&mut OpenCall, Denial> {
        let place = open.iter().position(|known| known.call == call);
        let place = place.unwrap_or(open.len());
        if place == open.len() {
            if place == MOST_CALLS {
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
    /// the last for the name.
    fn go_on(&mut self, piece: &str, tools: &GuardedTools) -> Option<usize> {
        let alone = tools.find(piece);
        let Some(name) = &mut self.name else { return alone };
        name.push_str(piece);
        let entry = tools.find(name).or(alone);
        if entry.is_some() || !tools.may_become(name) {
            self.name = None;
        }
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
            tools,
            approved: may,
            action,
            reader: CalledTools::default(),
            open: Vec::new(),
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
    pub(crate) fn holds(&self) -> bool {
        let mut open = self.open.iter();
        self.action == GuardAction::Deny && open.any(|call| call.name.is_some() && !call.has_arguments)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.reader.capacity() + self.open.capacity() * size_of::<OpenCall>()
    }

    /// Looks at a document of the answer, which is JSON.
    ///
    /// # Errors
    /// [`Denial`]: a guarded tool is called, or more are than can be looked at.
    pub(crate) fn document(
        &mut self,
        dialect: Dialect,
        document: &[u8],
        workspace: &mut Workspace,
    ) -> Result<(), Denial> {
        let Self {
            tools,
            approved,
            reader,
            open,
            guarded_call,
            approved_call,
            ..
        } = self;
        reader
            .read(dialect, document, workspace)
            .map_err(|_| Denial::Malformed)?;
        for (called, piece) in reader.calls() {
            let entry = match called.is_whole {
                true => tools.find(piece),
                false => {
                    let known = OpenCall::of(open, called.call)?;
                    known.has_arguments |= called.has_arguments;
                    known.go_on(piece, tools)
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
        self.open.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_stands_for_a_name_or_for_all_that_begin_so_whatever_their_case() {
        let tools = GuardedTools::new(["Bash", "mcp__github__*"]);
        for (name, entry) in [
            ("Bash", Some(0)),
            ("bash", Some(0)),
            ("BashOutput", None),
            ("Bas", None),
            ("", None),
            ("mcp__github__push", Some(1)),
            ("MCP__GitHub__", Some(1)),
            ("mcp__github_", None),
            ("mcp__gitlab__push", None),
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
            ("Read", false),
        ] {
            assert_eq!(tools.may_become(begin), may, "{begin}");
        }
    }
}
