//! Checks the bytes at a position to exclude positions where no match begins: cheaper than a
//! search.

use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input};
use regex_syntax::hir::{Class, Hir, HirKind, Repetition};

use crate::EvaluationError;
use crate::automaton::{FAULT, all_matches_dfa};
use crate::start_bytes::StartBytes;

/// Maximum bytes of a gap between words in a checked prefix. A longer gap ends the prefix: a text
/// that matches up to the gap usually also fills it, and an automaton for the gap has thousands of
/// states.
const MAX_GAP_BYTES: u32 = 16;
const CACHE_BYTES: usize = 1 << 18;

/// An automaton for the prefixes of a pattern's matches.
#[derive(Debug)]
pub(crate) struct Anchor(DFA);

impl Anchor {
    pub(crate) fn build(pattern: &Hir) -> Result<Self, String> {
        let head = pattern_prefix(pattern).unwrap_or_else(|| pattern.clone());
        all_matches_dfa(&[&head], CACHE_BYTES).map(Self)
    }

    /// Builds the anchor for the part of a match that begins with one of a needle's `literals`;
    /// `None` if it would exclude too little.
    pub(crate) fn after_literals(literals: &[Vec<u8>], rest: &Hir) -> Result<Option<Self>, String> {
        let longest = literals.iter().map(Vec::len).max().unwrap_or(0);
        match pattern_prefix(rest) {
            Some(head) if head.properties().minimum_len() <= Some(longest) => Ok(None),
            _ => Self::build(rest).map(Some),
        }
    }

    /// Returns the bytes with which its matches can begin.
    pub(crate) fn start_bytes(&self) -> Result<StartBytes, String> {
        StartBytes::from_dfa(&self.0, &mut self.0.create_cache())
    }

    /// Returns whether a match can begin at `place` of `text`, and the number of bytes read. If the
    /// text ends before the decision, a match can begin.
    pub(crate) fn check_start(
        &self,
        cache: &mut Option<Cache>,
        text: &[u8],
        place: usize,
    ) -> Result<(bool, usize), EvaluationError> {
        let cache = cache.get_or_insert_with(|| self.0.create_cache());
        if cache.clear_count() > 0 {
            return Ok((true, 0));
        }
        let input = Input::new(text).range(place..).anchored(Anchored::Yes);
        let mut state = self.0.start_state_forward(cache, &input).map_err(|_| FAULT)?;
        for (index, byte) in text[place..].iter().enumerate() {
            state = self.0.next_state(cache, state, *byte).map_err(|_| FAULT)?;
            if state.is_tagged() {
                return Ok((!state.is_dead(), index + 1));
            }
        }
        Ok((true, text.len() - place))
    }
}

/// Returns a pattern that matches a prefix of every match of `pattern`, up to a long gap; `None` if there is no such gap.
fn pattern_prefix(pattern: &Hir) -> Option<Hir> {
    match pattern.kind() {
        HirKind::Capture(group) => pattern_prefix(&group.sub),
        HirKind::Alternation(branches) => {
            let heads: Vec<Option<Hir>> = branches.iter().map(pattern_prefix).collect();
            let is_cut = heads.iter().any(Option::is_some);
            let whole = heads.into_iter().zip(branches);
            let cut = whole.map(|(head, branch)| head.unwrap_or_else(|| branch.clone()));
            is_cut.then(|| Hir::alternation(cut.collect()))
        }
        HirKind::Concat(parts) => {
            let (place, last) = parts
                .iter()
                .enumerate()
                .find_map(|(place, part)| Some((place, pattern_prefix(part)?)))?;
            Some(Hir::concat(
                parts[..place].iter().cloned().chain([last]).collect(),
            ))
        }
        HirKind::Repetition(repetition) if is_gap(repetition) => Some(Hir::repetition(Repetition {
            max: Some(repetition.min),
            ..repetition.clone()
        })),
        HirKind::Repetition(repetition) => match pattern_prefix(&repetition.sub) {
            Some(head) if repetition.min > 0 => Some(head),
            Some(_) => Some(Hir::empty()),
            None => None,
        },
        _ => None,
    }
}

/// Whether words and spaces can fill the repetition.
fn is_gap(repetition: &Repetition) -> bool {
    let HirKind::Class(Class::Unicode(class)) = repetition.sub.kind() else {
        return false;
    };
    let holds = |character: char| {
        let mut ranges = class.ranges().iter();
        ranges.any(|range| range.start() <= character && character <= range.end())
    };
    let spread = repetition.max.unwrap_or(u32::MAX).saturating_sub(repetition.min);
    spread > MAX_GAP_BYTES && holds(' ') && holds('e')
}

#[cfg(test)]
mod tests {
    use regex_syntax::parse;

    use super::*;

    #[test]
    fn a_head_is_what_every_match_begins_with() {
        for (pattern, expected) in [
            ("key[ ]{0,30}=", None),
            ("key.{0,40}end", Some("key")),
            ("ak[^;]{2,40}end", Some("ak[^;]{2}")),
            ("(?:abc|x.{5,50}|yz)w", Some("(?:abc|x.{5}|yz)")),
            ("(?<value>[a-z]{20}[a-z ]{0,30})[0-9]", Some("[a-z]{20}")),
            ("(?:a[a-z ]{0,30}b){0,2}c", Some("")),
            ("(?:a[a-z ]{0,30}b){1,2}c", Some("a")),
        ] {
            let expected = expected.map(|expected| parse(expected).unwrap());
            assert_eq!(pattern_prefix(&parse(pattern).unwrap()), expected, "{pattern}");
        }
    }

    #[test]
    fn a_place_is_told_by_what_stands_there() {
        let anchor = Anchor::build(&parse(r"(?-u:\bkey) ?= ?[0-9]{40}").unwrap()).unwrap();
        let holds = |text: &str, place| anchor.check_start(&mut None, text.as_bytes(), place).unwrap();
        assert_eq!(holds("key = x", 0), (false, 7));
        assert_eq!(holds("key = 1", 0), (true, 7));
        assert_eq!(holds("akey = 1", 1), (false, 1));
        assert!(holds(&format!("key={}", "1".repeat(60)), 0).0);
    }
}
