//! What tools are called at a provider, which knows functions alone.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use proofgate_dialect::{SentTool, ToolKind};

/// The longest name that all providers take, in bytes.
const LONGEST: usize = 64;

/// The tools of a request.
#[derive(Debug, Default)]
pub(super) struct Names {
    tools: Vec<SentTool>,
    /// Where each stands, by its [key].
    places: HashMap<String, usize>,
    taken: HashSet<Box<str>>,
}

/// What tells a tool from others.
fn key(kind: ToolKind, namespace: Option<&str>, name: &str) -> String {
    // No name of a namespace is empty.
    format!("{kind:?}\0{}\0{name}", namespace.unwrap_or_default())
}

impl Names {
    /// Gives a tool its name at the provider; `None` if it has one already.
    pub(super) fn add(&mut self, kind: ToolKind, namespace: Option<&str>, name: &str) -> Option<&SentTool> {
        let Entry::Vacant(place) = self.places.entry(key(kind, namespace, name)) else {
            return None;
        };
        place.insert(self.tools.len());
        let sent: Box<str> = self.free(sent_name(namespace, name)).into();
        self.taken.insert(sent.clone());
        self.tools.push(SentTool {
            kind,
            namespace: namespace.map(Box::from),
            name: name.into(),
            sent,
        });
        self.tools.last()
    }

    pub(super) fn len(&self) -> usize {
        self.tools.len()
    }

    /// A name that no tool has yet.
    fn free(&self, name: String) -> String {
        if !self.taken.contains(&*name) {
            return name;
        }
        let numbered = (2..).map(|number: u32| {
            let suffix = format!("_{number}");
            let room = LONGEST.saturating_sub(suffix.len());
            let mut numbered: String = name.chars().take(room).collect();
            numbered.push_str(&suffix);
            numbered
        });
        let mut numbered = numbered.filter(|name| !self.taken.contains(&**name));
        numbered.next().unwrap_or(name)
    }

    pub(super) fn find(&self, kind: ToolKind, namespace: Option<&str>, name: &str) -> Option<&SentTool> {
        let place = self.places.get(&key(kind, namespace, name))?;
        self.tools.get(*place)
    }

    /// The name at the provider of a tool that was called, whether or not the request has it still.
    pub(super) fn sent(&self, kind: ToolKind, namespace: Option<&str>, name: &str) -> String {
        match self.find(kind, namespace, name) {
            Some(tool) => tool.sent.to_string(),
            None => sent_name(namespace, name),
        }
    }

    /// The names at the provider of all tools of a namespace.
    pub(super) fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &str> {
        self.tools
            .iter()
            .filter(move |tool| tool.namespace.as_deref() == Some(namespace))
            .map(|tool| &*tool.sent)
    }

    /// What the way back has to know of them.
    pub(super) fn into_asked(self) -> Vec<SentTool> {
        self.tools.into_iter().filter(|tool| !tool.is_plain()).collect()
    }
}

/// A tool's name with its namespace's before it, in the characters and the length that providers take. A name that has to be
/// changed ends with its hash, so that it is told from others, and is the same in all turns.
fn sent_name(namespace: Option<&str>, name: &str) -> String {
    let Some(namespace) = namespace else {
        return name.to_owned();
    };
    let separator = if namespace.ends_with("__") { "" } else { "__" };
    let whole = format!("{namespace}{separator}{name}");
    let is_taken = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    if whole.len() <= LONGEST && whole.chars().all(is_taken) {
        return whole;
    }
    let cleaned = whole.chars().map(|char| if is_taken(char) { char } else { '_' });
    let room = LONGEST - 9;
    format!("{}_{:08x}", cleaned.take(room).collect::<String>(), hash(&whole))
}

/// FNV-1a of 32 bits.
fn hash(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST, Names, ToolKind, sent_name};

    #[test]
    fn tools_of_one_name_are_told_apart() {
        let mut names = Names::default();
        names.add(ToolKind::Function, None, "a__b");
        let other = names
            .add(ToolKind::Function, Some("a"), "b")
            .map(|tool| tool.sent.clone());
        assert_eq!(other.as_deref(), Some("a__b_2"));
        assert!(names.add(ToolKind::Function, Some("a"), "b").is_none());
        assert_eq!(names.sent(ToolKind::Function, Some("a"), "b"), "a__b_2");
        assert_eq!(names.into_asked().len(), 1);
    }

    #[test]
    fn a_name_is_what_providers_take() {
        let long = sent_name(Some("mcp__documents"), &"x".repeat(80));
        assert_eq!(long.len(), LONGEST);
        assert_ne!(long, sent_name(Some("mcp__documents"), &"x".repeat(81)));
        assert!(sent_name(Some("a.b"), "c d").starts_with("a_b__c_d_"));
        assert_eq!(sent_name(Some("mcp__docs__"), "search"), "mcp__docs__search");
    }
}
