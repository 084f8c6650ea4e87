//! The role of a text in a conversation, on which the actions of rules depend.

use serde::de::{Deserialize, Deserializer, Error};
use serde::{Serialize, Serializer};

use crate::Direction;

/// The role of a text in a conversation.
///
/// The order is that of the names in [`Scope::NAMES`]. Both kinds of arguments have the same name: tool arguments are judged
/// alike in the model's response and in the history that a client sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Scope {
    /// Instructions of the application to the model: messages of the role `system` or `developer`, and fields such as
    /// `instructions`.
    Instructions,
    /// Messages of a user, and every text of a request whose role is not known.
    User,
    /// Earlier messages of the model.
    Assistant,
    /// The name, the description and the schema of a tool.
    ToolDescription,
    /// Arguments of a tool call, in the history of a request.
    ToolArguments,
    /// The result of a tool call.
    ToolResult,
    /// Every other field of a request.
    #[default]
    Other,
    /// The model's response.
    Response,
    /// Arguments of a tool call, in the model's response.
    ResponseArguments,
}

impl Scope {
    /// Every scope, in order.
    pub const ALL: [Scope; 9] = [
        Scope::Instructions,
        Scope::User,
        Scope::Assistant,
        Scope::ToolDescription,
        Scope::ToolArguments,
        Scope::ToolResult,
        Scope::Other,
        Scope::Response,
        Scope::ResponseArguments,
    ];

    /// The names of scopes in policies.
    pub const NAMES: [&'static str; 8] = [
        "Instructions",
        "User",
        "Assistant",
        "ToolDescription",
        "ToolArguments",
        "ToolResult",
        "Other",
        "Answer",
    ];

    /// Returns its name in policies.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Instructions => "Instructions",
            Scope::User => "User",
            Scope::Assistant => "Assistant",
            Scope::ToolDescription => "ToolDescription",
            Scope::ToolArguments | Scope::ResponseArguments => "ToolArguments",
            Scope::ToolResult => "ToolResult",
            Scope::Other => "Other",
            Scope::Response => "Answer",
        }
    }

    /// Returns its identifier in results and records.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::Instructions => "instructions",
            Scope::User => "user",
            Scope::Assistant => "assistant",
            Scope::ToolDescription => "tool_description",
            Scope::ToolArguments | Scope::ResponseArguments => "tool_arguments",
            Scope::ToolResult => "tool_result",
            Scope::Other => "other",
            Scope::Response => "answer",
        }
    }

    /// Returns its human-readable name, such as `tool result`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Scope::ToolDescription => "tool description",
            Scope::ToolArguments | Scope::ResponseArguments => "tool arguments",
            Scope::ToolResult => "tool result",
            Scope::Other => "other field",
            _ => self.as_str(),
        }
    }

    /// Returns the direction of an exchange in which such a text is sent.
    #[must_use]
    pub const fn direction(self) -> Direction {
        match self {
            Scope::Response | Scope::ResponseArguments => Direction::Response,
            _ => Direction::Request,
        }
    }

    /// Whether a phrase in it can continue in the next message of the same scope.
    #[must_use]
    pub const fn is_prose(self) -> bool {
        matches!(self, Scope::Instructions | Scope::User | Scope::Assistant)
    }

    /// Returns the scope of a direction that has this name in policies.
    #[must_use]
    pub fn from_name(name: &str, direction: Direction) -> Option<Self> {
        let mut all = Self::ALL.into_iter();
        all.find(|scope| scope.name() == name && scope.direction() == direction)
    }
}

impl Serialize for Scope {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A set of scopes, serialised as a list of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeSet(u16);

impl ScopeSet {
    /// Every scope.
    pub const ALL: ScopeSet = ScopeSet(u16::MAX);

    /// Whether the set contains a scope.
    #[must_use]
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u16) != 0
    }

    /// Adds a scope.
    pub(crate) fn insert(&mut self, scope: Scope) {
        self.0 |= 1 << scope as u16;
    }
}

impl FromIterator<Scope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        let mut set = Self::default();
        scopes.into_iter().for_each(|scope| set.insert(scope));
        set
    }
}

impl<'de> Deserialize<'de> for ScopeSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut set = Self::default();
        for name in Vec::<String>::deserialize(deserializer)? {
            if !Scope::NAMES.contains(&name.as_str()) {
                let names = Scope::NAMES.join(", ");
                return Err(D::Error::custom(format!(
                    "there is no scope {name:?}; the scopes are: {names}"
                )));
            }
            let named = Scope::ALL.into_iter().filter(|scope| scope.name() == name);
            named.for_each(|scope| set.insert(scope));
        }
        Ok(set)
    }
}
