//! Names of tools at a provider that has only functions.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use proofgate_dialect::{ToolKind, ToolMapping};

/// The maximum length of a name that all providers accept, in bytes.
const MAX_NAME_LEN: usize = 64;

/// The tools of a request.
#[derive(Debug, Default)]
pub(super) struct ToolNames {
    tools: Vec<ToolMapping>,
    /// The index of each tool by its [`tool_key`].
    indices: HashMap<String, usize>,
    used_names: HashSet<Box<str>>,
}

/// Returns a key that identifies a tool.
fn tool_key(kind: ToolKind, namespace: Option<&str>, name: &str) -> String {
    // The name of a namespace is never empty.
    format!("{kind:?}\0{}\0{name}", namespace.unwrap_or_default())
}

impl ToolNames {
    /// Assigns a tool its name at the provider; `None` if it has one already.
    pub(super) fn add(
        &mut self,
        kind: ToolKind,
        namespace: Option<&str>,
        name: &str,
    ) -> Option<&ToolMapping> {
        let Entry::Vacant(place) = self.indices.entry(tool_key(kind, namespace, name)) else {
            return None;
        };
        place.insert(self.tools.len());
        let sent: Box<str> = self.unused_name(make_provider_name(namespace, name)).into();
        self.used_names.insert(sent.clone());
        self.tools.push(ToolMapping {
            kind,
            namespace: namespace.map(Box::from),
            name: name.into(),
            provider_name: sent,
        });
        self.tools.last()
    }

    pub(super) fn len(&self) -> usize {
        self.tools.len()
    }

    /// Returns a name that no tool has yet.
    fn unused_name(&self, name: String) -> String {
        if !self.used_names.contains(&*name) {
            return name;
        }
        let numbered = (2..).map(|number: u32| {
            let suffix = format!("_{number}");
            let room = MAX_NAME_LEN.saturating_sub(suffix.len());
            let mut numbered: String = name.chars().take(room).collect();
            numbered.push_str(&suffix);
            numbered
        });
        let mut numbered = numbered.filter(|name| !self.used_names.contains(&**name));
        numbered.next().unwrap_or(name)
    }

    pub(super) fn find(&self, kind: ToolKind, namespace: Option<&str>, name: &str) -> Option<&ToolMapping> {
        let place = self.indices.get(&tool_key(kind, namespace, name))?;
        self.tools.get(*place)
    }

    /// Returns the provider name of a called tool, whether or not the request still has it.
    pub(super) fn provider_name(&self, kind: ToolKind, namespace: Option<&str>, name: &str) -> String {
        match self.find(kind, namespace, name) {
            Some(tool) => tool.provider_name.to_string(),
            None => make_provider_name(namespace, name),
        }
    }

    /// Iterates over the provider names of all tools in a namespace.
    pub(super) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &str> {
        self.tools
            .iter()
            .filter(move |tool| tool.namespace.as_deref() == Some(namespace))
            .map(|tool| &*tool.provider_name)
    }

    /// Returns the mappings that the translation of the answer needs.
    pub(super) fn into_mappings(self) -> Vec<ToolMapping> {
        self.tools
            .into_iter()
            .filter(|tool| !tool.is_passthrough())
            .collect()
    }
}

/// Returns a tool's name with its namespace's name before it, in characters and a length that all providers accept. A
/// changed name ends with its hash, so that it is unique and the same in all turns.
fn make_provider_name(namespace: Option<&str>, name: &str) -> String {
    let Some(namespace) = namespace else {
        return name.to_owned();
    };
    let separator = if namespace.ends_with("__") { "" } else { "__" };
    let whole = format!("{namespace}{separator}{name}");
    let is_taken = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    if whole.len() <= MAX_NAME_LEN && whole.chars().all(is_taken) {
        return whole;
    }
    let cleaned = whole.chars().map(|char| if is_taken(char) { char } else { '_' });
    let room = MAX_NAME_LEN - 9;
    format!("{}_{:08x}", cleaned.take(room).collect::<String>(), hash(&whole))
}

/// Returns the 32-bit FNV-1a hash.
fn hash(text: &str) -> u32 {
    let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, step)
}

#[cfg(test)]
mod tests {
    use super::{MAX_NAME_LEN, ToolKind, ToolNames, make_provider_name};

    #[test]
    fn tools_of_one_name_are_told_apart() {
        let mut names = ToolNames::default();
        names.add(ToolKind::Function, None, "a__b");
        let other = names
            .add(ToolKind::Function, Some("a"), "b")
            .map(|tool| tool.provider_name.clone());
        assert_eq!(other.as_deref(), Some("a__b_2"));
        assert!(names.add(ToolKind::Function, Some("a"), "b").is_none());
        assert_eq!(names.provider_name(ToolKind::Function, Some("a"), "b"), "a__b_2");
        assert_eq!(names.into_mappings().len(), 1);
    }

    #[test]
    fn a_name_is_what_providers_take() {
        let long = make_provider_name(Some("mcp__documents"), &"x".repeat(80));
        assert_eq!(long.len(), MAX_NAME_LEN);
        assert_ne!(long, make_provider_name(Some("mcp__documents"), &"x".repeat(81)));
        assert!(make_provider_name(Some("a.b"), "c d").starts_with("a_b__c_d_"));
        assert_eq!(
            make_provider_name(Some("mcp__docs__"), "search"),
            "mcp__docs__search"
        );
    }
}
