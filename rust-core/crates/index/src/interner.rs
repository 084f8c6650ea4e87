//! Interns texts and lists of texts: each is stored once and has a number.

use std::collections::HashMap;

/// The texts and lists of texts that the rows of a day refer to.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextInterner {
    texts: HashMap<String, u32>,
    ordered_texts: Vec<String>,
    lists: HashMap<Vec<u32>, u32>,
    ordered_lists: Vec<Vec<u32>>,
}

impl TextInterner {
    /// Returns the number of a text.
    pub(crate) fn intern_text(&mut self, text: &str) -> u32 {
        if let Some(number) = self.texts.get(text) {
            return *number;
        }
        let number = self.ordered_texts.len() as u32;
        self.texts.insert(text.to_owned(), number);
        self.ordered_texts.push(text.to_owned());
        number
    }

    /// Returns the number of a list of texts; `None` for an empty list.
    pub(crate) fn intern_list(&mut self, texts: &[u32]) -> Option<u32> {
        if texts.is_empty() {
            return None;
        }
        if let Some(number) = self.lists.get(texts) {
            return Some(*number);
        }
        let number = self.ordered_lists.len() as u32;
        self.lists.insert(texts.to_vec(), number);
        self.ordered_lists.push(texts.to_vec());
        Some(number)
    }

    /// Returns the number of a list of names, in their order and without duplicates.
    pub(crate) fn intern_unique<'n>(&mut self, names: impl Iterator<Item = &'n str>) -> Option<u32> {
        let mut names: Vec<&str> = names.collect();
        names.sort_unstable();
        names.dedup();
        let texts: Vec<u32> = names.into_iter().map(|name| self.intern_text(name)).collect();
        self.intern_list(&texts)
    }

    /// Returns the names in a list.
    pub(crate) fn list_texts(&self, list: Option<u32>) -> impl Iterator<Item = &str> {
        let texts = list.map_or(&[][..], |list| &self.ordered_lists[list as usize][..]);
        texts
            .iter()
            .map(|text| self.ordered_texts[*text as usize].as_str())
    }

    pub(crate) fn texts(&self) -> &[String] {
        &self.ordered_texts
    }

    pub(crate) fn lists(&self) -> &[Vec<u32>] {
        &self.ordered_lists
    }
}
