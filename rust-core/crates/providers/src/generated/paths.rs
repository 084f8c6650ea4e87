use std::ops::Range;

use proofgate_json::{Event, Str};

/// How many choices, blocks, fields and elements of a document are read: what is noted of them takes 10 MiB at most,
/// whatever the document's size.
const MAX_NODES: usize = 1 << 16;

/// The ways down a document to its strings.
#[derive(Debug, Default)]
pub(super) struct NodePaths {
    nodes: Vec<Node>,
    names: String,
    overflowed: bool,
}

/// A step on the way from a choice, a block or an item down to a string.
#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    step: Step,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// An element of an array, by its field `index` or else by its position.
    Element(u64),
    /// A field, by its name in [`NodePaths::names`].
    Field(Range<usize>),
}

impl NodePaths {
    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.names.clear();
        self.overflowed = false;
    }

    pub(super) fn release_memory(&mut self, most: usize) {
        self.clear();
        self.names.shrink_to(most);
        self.nodes.shrink_to(most / size_of::<Node>());
    }

    pub(super) fn capacity(&self) -> usize {
        self.names.capacity() + self.nodes.capacity() * size_of::<Node>()
    }

    /// Whether there were more nodes than are noted.
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Adds a node. Of a document with too many the rest is read to its end, and nothing more is noted.
    pub(super) fn add(&mut self, parent: Option<usize>, step: Step) -> usize {
        self.overflowed |= self.nodes.len() >= MAX_NODES;
        if !self.overflowed {
            self.nodes.push(Node { parent, step });
        }
        self.nodes.len() - 1
    }

    pub(super) fn add_field(&mut self, parent: Option<usize>, key: Str<'_>) -> usize {
        if self.overflowed {
            return self.nodes.len() - 1;
        }
        let start = self.names.len();
        key.unescape_into(&mut self.names);
        self.add(parent, Step::Field(start..self.names.len()))
    }

    /// A step to the field `name`.
    pub(super) fn field_step(&mut self, name: &str) -> Step {
        let start = self.names.len();
        self.names.push_str(name);
        Step::Field(start..self.names.len())
    }

    pub(super) fn is_root(&self, node: usize) -> bool {
        self.nodes[node].parent.is_none()
    }

    /// Puts a node elsewhere: what stands below it moves along.
    pub(super) fn move_to(&mut self, node: usize, parent: Option<usize>, step: Step) {
        self.nodes[node] = Node { parent, step };
    }

    /// Gives an element the index that it names; what is no index leaves it at its position.
    pub(super) fn set_index(&mut self, node: usize, value: Event<'_>) {
        if let Some(index) = index(value) {
            self.nodes[node].step = Step::Element(index);
        }
    }

    /// The index that the way to a node begins with; the largest one if it begins with a field.
    pub(super) fn first_index(&self, node: usize) -> u64 {
        match self.nodes[self.root(node)].step {
            Step::Element(index) => index,
            Step::Field(_) => u64::MAX,
        }
    }

    /// Whether the way to a node goes through a field of one of these names.
    pub(super) fn has_field(&self, node: usize, names: &[&str]) -> bool {
        let mut at = Some(node);
        while let Some(Node { parent, step }) = at.and_then(|node| self.nodes.get(node)) {
            if let Step::Field(name) = step
                && names.contains(&&self.names[name.clone()])
            {
                return true;
            }
            at = *parent;
        }
        false
    }

    fn root(&self, mut node: usize) -> usize {
        while let Some(parent) = self.nodes[node].parent {
            node = parent;
        }
        node
    }

    /// Whether the way to `node` goes through `above`.
    pub(super) fn is_below(&self, node: usize, above: usize) -> bool {
        let mut at = Some(node);
        while let Some(node) = at.filter(|node| *node != above) {
            at = self.nodes[node].parent;
        }
        at.is_some()
    }

    /// Appends the way to a node as a JSON pointer (RFC 6901) without its first slash.
    pub(super) fn write(&self, node: usize, out: &mut String) {
        let Node { parent, step } = &self.nodes[node];
        if let Some(parent) = *parent {
            self.write(parent, out);
            out.push('/');
        }
        match step {
            Step::Element(index) => write_number(*index, out),
            Step::Field(name) => {
                for character in self.names[name.clone()].chars() {
                    match character {
                        '~' => out.push_str("~0"),
                        '/' => out.push_str("~1"),
                        other => out.push(other),
                    }
                }
            }
        }
    }
}

/// The index that a number is.
pub(super) fn index(value: Event<'_>) -> Option<u64> {
    match value {
        Event::Number(number) => number.parse().ok(),
        _ => None,
    }
}

fn write_number(number: u64, out: &mut String) {
    if number >= 10 {
        write_number(number / 10, out);
    }
    out.push(char::from(b'0' + (number % 10) as u8));
}
