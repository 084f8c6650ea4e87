//! Texts and lists of texts, each once, with a number.

use std::collections::HashMap;

/// The texts that the rows of a day name, and the lists of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    texts: HashMap<String, u32>,
    in_order: Vec<String>,
    lists: HashMap<Vec<u32>, u32>,
    lists_in_order: Vec<Vec<u32>>,
}

impl Names {
    /// The number of a text.
    pub(crate) fn text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.in_order.len() as u32;
        self.texts.insert(text.to_owned(), number);
        self.in_order.push(text.to_owned());
        number
    }

    /// The number of a list of texts; `None` for an empty one.
    pub(crate) fn list(&mut self, texts: &[u32]) -> Option<u32> {
        if texts.is_empty() {
            return None;
        }
        if let Some(number) = self.lists.get(texts) {
            return Some(*number);
        }
        let number = self.lists_in_order.len() as u32;
        self.lists.insert(texts.to_vec(), number);
        self.lists_in_order.push(texts.to_vec());
        Some(number)
    }

    /// A list of names, in their order, each once, as a list.
    pub(crate) fn set<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Option<u32> {
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        let texts: Vec<u32> = names.into_iter().map(|name| self.text(name)).collect();
        self.list(&texts)
    }

    /// The names of a list.
    pub(crate) fn of_list(&self, list: Option<u32>) -> impl Iterator<Item = &str> {
        let texts = list.map_or(&[][..], |list| &self.lists_in_order[list as usize][..]);
        texts.iter().map(|text| self.in_order[*text as usize].as_str())
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.in_order
    }

    pub(crate) fn lists(&self) -> &[Vec<u32>] {
        &self.lists_in_order
    }
}
