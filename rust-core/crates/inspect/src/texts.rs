//! The texts of one answer, each scanned by itself.
//!
//! A text can be over before the answer is: when an event brings other texts of its choice and nothing of it, as when the
//! content follows the reasoning, or when the choice says that it finished. What of it is undecided is decided then as if nothing followed, so that one text holds no
//! other back. Should it go on after all, it is scanned as the one text that it is; a match that has to be replaced and
//! begins in what has left denies the answer.

use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{Match, Scope, Step};
use proofgate_providers::{JsonText, KeyNames};

use crate::denial::Denial;
use crate::findings::{Findings, Rules, TOGETHER, sort};
use crate::marked::{PieceScan, WholeScan};
use crate::masks::{AnswerGrowth, MaskScan, MaskedSpan, Masks, masks_in};
use crate::singles::{Single, Singles};
use crate::spans::Spans;

/// How many texts an answer may have: its choices, the arguments of their tool calls, and so on.
const MOST_TEXTS: usize = 256;

/// How many texts a streamed answer in blocks or items may have: each sentence with a citation is a block of its own.
const MOST_TEXTS_OF_BLOCKS: usize = 4096;

/// One text of an answer, such as the content of its first choice.
#[derive(Debug, Default)]
pub(crate) struct Text {
    key: String,
    /// The index of its choice.
    choice: u64,
    scope: Scope,
    scan: PieceScan,
    /// The number of the event that brought the last piece of it.
    event: usize,
    /// Whether it seems to be over, and what was found because of that.
    over: bool,
    found_over: Vec<Match>,
    /// What does not count yet: it may overlap what is found later.
    uncounted: Vec<Match>,
    /// Bytes that have left.
    released: usize,
    /// The text, if it is scanned at its end.
    whole: String,
    /// Bytes so far.
    pub(crate) length: usize,
    /// Bytes that no match can touch any more but for those in `spans`.
    pub(crate) cleared: usize,
    pub(crate) spans: Spans,
    /// What of it is JSON, if it is scanned piece by piece, and the names of keys that were changed.
    pub(crate) json: JsonText,
    pub(crate) keys: KeyNames,
    /// Masks that are put back, where that is wanted.
    masked: MaskScan,
}

impl Text {
    fn restart(&mut self, key: &str, choice: u64, scope: Scope) {
        self.key.clear();
        self.key.push_str(key);
        self.choice = choice;
        self.scope = scope;
        self.uncounted.clear();
        self.scan = PieceScan::default();
        self.over = false;
        self.found_over.clear();
        self.released = 0;
        self.whole.clear();
        self.length = 0;
        self.cleared = 0;
        self.spans.clear();
        self.json = JsonText::default();
        self.keys = KeyNames::default();
        self.masked.clear();
    }

    /// The masks in `range` that are put back: none of which a rule replaces a part.
    pub(crate) fn masked(&self, range: &Range<usize>) -> impl Iterator<Item = &MaskedSpan> + Clone {
        self.masked
            .within(range)
            .filter(|masked| !self.spans.touch(&masked.range))
    }

    /// All of it, if it is scanned at its end.
    pub(crate) fn whole(&self) -> Option<&str> {
        (!self.whole.is_empty()).then_some(&self.whole)
    }

    fn push(&mut self, piece: &str, rules: &mut Rules<'_>, findings: &mut Findings) -> Result<(), Denial> {
        if rules.profile.is_idle_in(self.scope) {
            // Only masks are looked for.
            self.cleared = self.length;
            return Ok(());
        }
        findings.found.clear();
        let cleared = self.scan.push(
            rules.engine,
            rules.profile,
            self.scope,
            piece,
            &mut rules.budget,
            rules.scratch,
            &mut findings.found,
        )?;
        self.json.push(piece);
        self.over = false;
        self.scan.ends().go_on(&mut self.spans);
        self.judge(rules, findings, None);
        let undecided = self.scan.ends().undecided();
        let cleared = undecided.map_or(cleared, |undecided| undecided.min(cleared));
        self.cleared = self.cleared.max(self.json.floor(cleared));
        self.scan.forget_ends();
        self.count_up_to(self.scan.decided(), rules, findings);
        Ok(())
    }

    fn finish(&mut self, rules: &mut Rules<'_>, findings: &mut Findings) -> Result<(), Denial> {
        findings.found.clear();
        end(&mut self.scan, self.scope, rules, findings)?;
        self.json.end();
        self.cleared = self.length;
        self.scan.ends().go_on(&mut self.spans);
        self.judge(rules, findings, None);
        self.count_up_to(self.length, rules, findings);
        Ok(())
    }

    /// Decides what is undecided as if nothing followed.
    fn pause(&mut self, rules: &mut Rules<'_>, findings: &mut Findings) -> Result<(), Denial> {
        self.over = true;
        if self.cleared == self.length {
            return Ok(());
        }
        findings.found.clear();
        let mut scan = self.scan.clone();
        end(&mut scan, self.scope, rules, findings)?;
        self.cleared = self.length;
        // Should it go on, all of this is found again, and counts then if it still does.
        let known = self.uncounted.len();
        scan.ends().go_on(&mut self.spans);
        self.judge(rules, findings, Some(&mut scan));
        let mut all = self.uncounted.clone();
        sort(&mut all);
        findings.count(rules, self.scope, &all);
        self.uncounted.truncate(known);
        self.found_over.extend_from_slice(&findings.found);
        Ok(())
    }

    /// `scan`: the one that has found it, if it is not that of the text.
    fn judge(&mut self, rules: &Rules<'_>, findings: &mut Findings, scan: Option<&mut PieceScan>) {
        let (released, found_over) = (self.released, &self.found_over);
        let is_late = |found: &Match| found.start < released && !found_over.contains(found);
        let ends = scan.unwrap_or(&mut self.scan).ends();
        let end = |found: &Match| ends.end(rules.engine, found);
        findings.judge(rules, self.scope, &mut self.spans, None, is_late, end);
        self.uncounted.extend_from_slice(&findings.found);
    }

    /// Counts the matches that nothing can overlap any more: those before the first group of overlapping ones that reaches
    /// beyond what is decided.
    fn count_up_to(&mut self, decided: usize, rules: &Rules<'_>, findings: &mut Findings) {
        if self.uncounted.is_empty() {
            return;
        }
        sort(&mut self.uncounted);
        let (mut final_count, mut end) = (0, 0);
        for (number, found) in self.uncounted.iter().enumerate() {
            if found.start >= end {
                final_count = number;
            }
            end = end.max(found.end);
            if end > decided {
                break;
            }
            if number + 1 == self.uncounted.len() {
                final_count = number + 1;
            }
        }
        findings.count(rules, self.scope, &self.uncounted[..final_count]);
        self.uncounted.drain(..final_count);
    }
}

fn end(
    scan: &mut PieceScan,
    scope: Scope,
    rules: &mut Rules<'_>,
    findings: &mut Findings,
) -> Result<(), Denial> {
    scan.finish(
        rules.engine,
        rules.profile,
        scope,
        &mut rules.budget,
        rules.scratch,
        &mut findings.found,
    )?;
    Ok(())
}

/// All texts of an answer.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// Those in use come first.
    texts: Vec<Text>,
    used: usize,
    /// Those that come at once.
    singles: Singles,
    /// Whether texts are scanned at their end, which is cheaper than piece by piece.
    at_end: bool,
    /// Whether the answer comes in blocks or items.
    in_blocks: bool,
    /// What is put back in a stream, and how much longer that has made it.
    masks: Option<Masks>,
    growth: AnswerGrowth,
    /// The number of the event whose pieces come.
    event: usize,
    /// Texts that are ended, and how far the scan of the next one is, if it is scanned at its end.
    ended: usize,
    scan: WholeScan,
}

impl Texts {
    /// Forgets all texts; those of the next answer are scanned at their end or piece by piece.
    pub(crate) fn reset(&mut self, at_end: bool, in_blocks: bool) {
        self.used = 0;
        self.singles.clear();
        self.at_end = at_end;
        self.in_blocks = in_blocks;
        self.masks = None;
        self.growth = AnswerGrowth::default();
        self.ended = 0;
        self.scan = WholeScan::default();
    }

    /// Has the masks in the texts of a stream put back.
    pub(crate) fn put_back(&mut self, masks: Masks) {
        self.masks = Some(masks);
    }

    /// What is put back, if anything is.
    pub(crate) fn masks(&self) -> Option<&Masks> {
        self.masks.as_ref()
    }

    /// Bytes of memory that is taken, for the most part.
    pub(crate) fn capacity(&self) -> usize {
        let texts = self.texts.iter();
        let strings: usize = texts
            .map(|text| {
                let whole = text.whole.capacity() + text.key.capacity();
                whole + text.masked.capacity() + text.json.capacity()
            })
            .sum();
        strings + self.texts.capacity() * size_of::<Text>() + self.singles.capacity()
    }

    /// Gives back the memory of what has more than `most` bytes.
    pub(crate) fn give_back(&mut self, most: usize) {
        if self.capacity() > most {
            self.used = 0;
            self.texts = Vec::new();
            self.singles.give_back(most);
        }
    }

    /// The number of the text with this key, which belongs to a choice and is of this scope.
    pub(crate) fn number(&mut self, key: &str, choice: u64, scope: Scope) -> Result<usize, Denial> {
        let known = self.texts[..self.used].iter().rposition(|text| text.key == key);
        if let Some(number) = known {
            return Ok(number);
        }
        let most = if self.in_blocks {
            MOST_TEXTS_OF_BLOCKS
        } else {
            MOST_TEXTS
        };
        if self.used == most {
            return Err(Denial::TooLarge);
        }
        if self.used == self.texts.len() {
            self.texts.push(Text::default());
        }
        let number = self.used;
        self.used += 1;
        self.texts[number].restart(key, choice, scope);
        Ok(number)
    }

    /// Takes a text that has come at once; its number among [those](Texts::single) of which something may be replaced.
    pub(crate) fn push_single(
        &mut self,
        (value, scope): (&str, Scope),
        rules: &mut Rules<'_>,
        findings: &mut Findings,
    ) -> Result<Option<usize>, Denial> {
        if self.at_end {
            return Ok(Some(self.singles.add(value, scope)));
        }
        let masked = match &self.masks {
            Some(masks) => masks_in(value, masks, &mut self.growth),
            None => Vec::new(),
        };
        self.singles.scan((value, scope), masked, rules, findings)
    }

    /// Adds a piece to a text.
    pub(crate) fn push(
        &mut self,
        number: usize,
        piece: &str,
        rules: &mut Rules<'_>,
        findings: &mut Findings,
    ) -> Result<(), Denial> {
        let text = &mut self.texts[number];
        text.event = self.event;
        text.length += piece.len();
        if self.at_end {
            text.whole.push_str(piece);
            return Ok(());
        }
        if let Some(masks) = &self.masks {
            text.masked.push(piece, masks, &mut self.growth);
        }
        text.push(piece, rules, findings)
    }

    /// Ends the event that brought the last pieces; `finished` are the choices that ended with it.
    pub(crate) fn end_event(
        &mut self,
        finished: impl Iterator<Item = u64> + Clone,
        rules: &mut Rules<'_>,
        findings: &mut Findings,
    ) -> Result<(), Denial> {
        if self.at_end {
            return Ok(());
        }
        for number in 0..self.used {
            let Text {
                choice,
                event,
                over,
                scope,
                ..
            } = self.texts[number];
            let has_finished = finished.clone().any(|finished| finished == choice);
            if over && !has_finished {
                continue;
            }
            let mut others = self.texts[..self.used].iter();
            let goes_on = event != self.event
                && others.any(|other| other.choice == choice && other.event == self.event);
            let text = &mut self.texts[number];
            if !over && (goes_on || has_finished) {
                text.pause(rules, findings)?;
            }
            // Calls of tools can come in turns. Their JSON does not end with the beginning of a mask: nothing is held for long.
            let is_ended = has_finished || goes_on && scope != Scope::AnswerArguments;
            if let Some(masks) = self.masks.as_ref().filter(|_| is_ended) {
                text.masked.end(masks, &mut self.growth);
            }
        }
        self.event += 1;
        Ok(())
    }

    pub(crate) fn are_scanned_at_end(&self) -> bool {
        self.at_end
    }

    /// Ends the texts that are left, for a slice of time if they are scanned at their end.
    pub(crate) fn finish(
        &mut self,
        rules: &mut Rules<'_>,
        slice: Duration,
        findings: &mut Findings,
    ) -> Result<Step, Denial> {
        let mut scanned = 0;
        while let Some(text) = self.texts[..self.used].get_mut(self.ended) {
            if self.at_end {
                text.cleared = text.length;
                let whole = (text.whole.as_str(), text.scope);
                let step = findings.step(&mut self.scan, rules, slice, whole, None, &mut text.spans)?;
                self.ended += usize::from(step == Step::Done);
                scanned += text.length;
                // Many texts are as long as one.
                if step == Step::Pending || scanned > TOGETHER {
                    return Ok(Step::Pending);
                }
            } else {
                text.finish(rules, findings)?;
                if let Some(masks) = &self.masks {
                    text.masked.end(masks, &mut self.growth);
                }
                self.ended += 1;
            }
        }
        self.singles.finish(rules, slice, findings)
    }

    pub(crate) fn get(&self, number: usize) -> &Text {
        &self.texts[number]
    }

    /// A text, and what is put back in it.
    pub(crate) fn get_mut(&mut self, number: usize) -> (&mut Text, Option<&Masks>) {
        (&mut self.texts[number], self.masks.as_ref())
    }

    /// Whether nothing can change any more in a text before `end`.
    pub(crate) fn is_cleared(&self, number: usize, end: usize) -> bool {
        let text = &self.texts[number];
        if self.masks.is_none() {
            return end <= text.cleared;
        }
        // A rule must have had its say of all of a mask.
        let last = end.saturating_sub(1)..end;
        let end = text
            .masked
            .within(&last)
            .map(|masked| masked.range.end)
            .fold(end, usize::max);
        end <= text.cleared && end <= text.masked.decided()
    }

    pub(crate) fn single(&self, number: usize) -> &Single {
        self.singles.get(number)
    }

    /// A text that came at once has left.
    pub(crate) fn released_single(&mut self, number: usize) {
        self.singles.released(number);
    }

    /// The bytes of a text before `offset` have left.
    pub(crate) fn released(&mut self, number: usize, offset: usize) {
        let text = &mut self.texts[number];
        text.released = offset;
        if self.masks.is_some() {
            let Text { masked, spans, .. } = text;
            masked.keep(|masked| !spans.touch(&masked.range));
            masked.forget(offset);
        }
        // What a number or an escape is replaced with it is all of it.
        let offset = text.json.floor(offset);
        text.spans.forget(offset);
        let first = text.spans.first().unwrap_or(offset);
        text.json.forget(first.min(offset));
    }
}
