//! The literals of all rules, and the rules that each of them triggers.

use std::collections::HashMap;

use crate::needle::Offsets;
use crate::prefilter::Prefilter;
use crate::rule::Rule;
use crate::trigger::Trigger;
use crate::{RuleIndex, View};

/// A rule that a literal of the prefilter triggers.
pub(crate) struct NeedleOwner {
    pub(crate) rule: RuleIndex,
    pub(crate) view: View,
    pub(crate) needle: u8,
    pub(crate) offsets: Offsets,
    /// Whether the literal has to be at the start of a word.
    pub(crate) at_word_start: bool,
}

/// The needles of some rules, searched for in one pass.
pub(crate) struct NeedleSearch {
    pub(crate) prefilter: Prefilter,
    /// For every literal of the prefilter, the rules that it triggers.
    pub(crate) owners: Vec<Vec<NeedleOwner>>,
}

impl NeedleSearch {
    /// Builds the search for the needles of the rules with this view, or of all rules.
    pub(crate) fn for_rules(rules: &[Rule], view: Option<View>) -> Self {
        let mut literals = Vec::<Vec<u8>>::new();
        let mut numbers = HashMap::<&[u8], usize>::new();
        let mut owners = Vec::<Vec<NeedleOwner>>::new();
        for (number, rule) in (0_u16..).zip(rules) {
            let Trigger::Needles(needles) = &rule.trigger else {
                continue;
            };
            if view.is_some_and(|view| view != rule.view) {
                continue;
            }
            for (number_of_needle, needle) in (0_u8..).zip(needles) {
                for literal in &needle.literals {
                    let number_of_literal = *numbers.entry(literal).or_insert_with(|| {
                        literals.push(literal.clone());
                        owners.push(Vec::new());
                        literals.len() - 1
                    });
                    owners[number_of_literal].push(NeedleOwner {
                        rule: RuleIndex(number),
                        view: rule.view,
                        needle: number_of_needle,
                        offsets: needle.offsets,
                        at_word_start: needle.requires_word_start(literal),
                    });
                }
            }
        }
        Self {
            prefilter: Prefilter::new(&literals),
            owners,
        }
    }
}
