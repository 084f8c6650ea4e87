use std::ops::Range;

use proofgate_json::{Event, Str};

/// Maximum number of choices, blocks, fields and elements that are recorded for a document. The
/// records take at most 10 MiB, whatever the size of the document.
const MAX_NODES: usize = 1 << 16;

/// The paths to the strings of a document.
#[derive(Debug, Default)]
pub(super) struct NodePaths {
    nodes: Vec<Node>,
    names: String,
    overflowed: bool,
}

/// One step of a path from a choice, a block or an item down to a string.
#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    step: Step,
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    /// An element of an array, by its field `index`, or else by its position.
    Element(u64),
    /// A field, by the range of its name in [`NodePaths::names`].
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

    /// Whether there were more nodes than the limit.
    pub(super) fn overflowed(&self) -> bool {
        self.overflowed
    }

    /// Adds a node. Beyond the limit, the rest of the document is read without recording nodes.
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

    /// Returns a step to the field `name`.
    pub(super) fn field_step(&mut self, name: &str) -> Step {
        let start = self.names.len();
        self.names.push_str(name);
        Step::Field(start..self.names.len())
    }

    pub(super) fn is_root(&self, node: usize) -> bool {
        self.nodes[node].parent.is_none()
    }

    /// Moves a node and everything below it.
    pub(super) fn move_to(&mut self, node: usize, parent: Option<usize>, step: Step) {
        self.nodes[node] = Node { parent, step };
    }

    /// Sets the index of an element to `value`. If `value` is not a valid index, the element keeps
    /// its position as its index.
    pub(super) fn set_index(&mut self, node: usize, value: Event<'_>) {
        if let Some(index) = index(value) {
            self.nodes[node].step = Step::Element(index);
        }
    }

    /// Returns the index at the start of a node's path; `u64::MAX` if the path starts with a field.
    pub(super) fn first_index(&self, node: usize) -> u64 {
        match self.nodes[self.root(node)].step {
            Step::Element(index) => index,
            Step::Field(_) => u64::MAX,
        }
    }

    /// Whether the path of a node contains a field with one of these names.
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

    /// Whether the path of `node` passes through `above`.
    pub(super) fn is_below(&self, node: usize, above: usize) -> bool {
        let mut at = Some(node);
        while let Some(node) = at.filter(|node| *node != above) {
            at = self.nodes[node].parent;
        }
        at.is_some()
    }

    /// Appends the path of a node as a JSON pointer (RFC 6901) without its leading slash.
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

/// Returns the index that a number represents.
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
