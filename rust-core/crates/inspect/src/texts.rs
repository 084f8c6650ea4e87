//! The texts of one response, each scanned separately.
//!
//! A text can end before the response: when its choice has finished, or when an event carries other
//! texts of the choice but no part of this text, such as content after reasoning. The undecided
//! part is then decided as if no text followed, so that one text does not hold back another. If the
//! text continues after all, it is scanned as one text; a match that has to be replaced and begins
//! in the released part denies the response.

use std::ops::Range;
use std::time::Duration;

use proofgate_policy::{Match, Scope, Step};
use proofgate_providers::{JsonEditTracker, UniqueKeyNames};

use crate::complete_texts::{CompleteText, CompleteTexts};
use crate::denial::Denial;
use crate::findings::{Findings, MAX_SLICE_BYTES, RuleContext, sort_matches};
use crate::masks::{MaskScan, MaskedSpan, Masks, ResponseGrowth, find_masks};
use crate::spans::Spans;
use crate::text_scan::{ChunkScan, FullScan};

/// Maximum number of texts of a response: its choices, the arguments of their tool calls, and so on.
const MAX_TEXTS: usize = 256;

/// Maximum number of texts of a streamed response in blocks or items: each sentence with a citation is a separate block.
const MAX_TEXTS_IN_BLOCKS: usize = 4096;

/// One text of a response, such as the content of its first choice.
#[derive(Debug, Default)]
pub(crate) struct ResponseText {
    key: String,
    /// The index of its choice.
    choice: u64,
    scope: Scope,
    scan: ChunkScan,
    /// The index of the event with the last piece of it.
    event: usize,
    /// Whether it appears to be finished, and the matches found because of that.
    seems_finished: bool,
    found_when_finished: Vec<Match>,
    /// Matches that do not count yet, because they may overlap later ones.
    uncounted: Vec<Match>,
    /// Number of released bytes.
    released: usize,
    /// The text, if it is scanned at its end.
    full_text: String,
    /// Bytes received so far.
    pub(crate) length: usize,
    /// Number of bytes that no further match can touch, except those in `spans`.
    pub(crate) decided_len: usize,
    pub(crate) spans: Spans,
    /// The JSON in it, if it is scanned piece by piece, and the names of changed keys.
    pub(crate) json: JsonEditTracker,
    pub(crate) keys: UniqueKeyNames,
    /// Masks that are restored, if restoring is enabled.
    mask_scan: MaskScan,
}

impl ResponseText {
    fn restart(&mut self, key: &str, choice: u64, scope: Scope) {
        self.key.clear();
        self.key.push_str(key);
        self.choice = choice;
        self.scope = scope;
        self.uncounted.clear();
        self.scan = ChunkScan::default();
        self.seems_finished = false;
        self.found_when_finished.clear();
        self.released = 0;
        self.full_text.clear();
        self.length = 0;
        self.decided_len = 0;
        self.spans.clear();
        self.json = JsonEditTracker::default();
        self.keys = UniqueKeyNames::default();
        self.mask_scan.clear();
    }

    /// Returns the masks in `range` that are restored: the masks that no rule partly replaces.
    pub(crate) fn restored_masks(&self, range: &Range<usize>) -> impl Iterator<Item = &MaskedSpan> + Clone {
        self.mask_scan
            .overlapping(range)
            .filter(|masked| !self.spans.overlaps(&masked.range))
    }

    /// Returns the whole text, if it is scanned at its end.
    pub(crate) fn full_text(&self) -> Option<&str> {
        (!self.full_text.is_empty()).then_some(&self.full_text)
    }

    fn push(
        &mut self,
        piece: &str,
        rules: &mut RuleContext<'_>,
        findings: &mut Findings,
    ) -> Result<(), Denial> {
        if rules.profile.is_idle_in(self.scope) {
            // Only masks are searched for.
            self.decided_len = self.length;
            return Ok(());
        }
        findings.matches.clear();
        let cleared = self.scan.push(
            rules.engine,
            rules.profile,
            self.scope,
            piece,
            &mut rules.budget,
            rules.scratch,
            &mut findings.matches,
        )?;
        self.json.push(piece);
        self.seems_finished = false;
        self.scan.token_ends().extend_tokens(&mut self.spans);
        self.judge(rules, findings, None);
        let undecided = self.scan.token_ends().undecided_start();
        let cleared = undecided.map_or(cleared, |undecided| undecided.min(cleared));
        self.decided_len = self.decided_len.max(self.json.floor_boundary(cleared));
        self.scan.discard_token_ends();
        self.count_up_to(self.scan.decided_len(), rules, findings);
        Ok(())
    }

    fn finish(&mut self, rules: &mut RuleContext<'_>, findings: &mut Findings) -> Result<(), Denial> {
        findings.matches.clear();
        finish_scan(&mut self.scan, self.scope, rules, findings)?;
        self.json.finish();
        self.decided_len = self.length;
        self.scan.token_ends().extend_tokens(&mut self.spans);
        self.judge(rules, findings, None);
        self.count_up_to(self.length, rules, findings);
        Ok(())
    }

    /// Decides the undecided part as if no text followed.
    fn flush(&mut self, rules: &mut RuleContext<'_>, findings: &mut Findings) -> Result<(), Denial> {
        self.seems_finished = true;
        if self.decided_len == self.length {
            return Ok(());
        }
        findings.matches.clear();
        let mut scan = self.scan.clone();
        finish_scan(&mut scan, self.scope, rules, findings)?;
        self.decided_len = self.length;
        // If the text continues, all of this is found again, and counts then if it still matches.
        let known = self.uncounted.len();
        scan.token_ends().extend_tokens(&mut self.spans);
        self.judge(rules, findings, Some(&mut scan));
        let mut all = self.uncounted.clone();
        sort_matches(&mut all);
        findings.count(rules, self.scope, &all);
        self.uncounted.truncate(known);
        self.found_when_finished.extend_from_slice(&findings.matches);
        Ok(())
    }

    /// `scan`: the scan that found the matches, if it is not that of the text.
    fn judge(&mut self, rules: &RuleContext<'_>, findings: &mut Findings, scan: Option<&mut ChunkScan>) {
        let (released, found_over) = (self.released, &self.found_when_finished);
        let is_late = |found: &Match| found.start < released && !found_over.contains(found);
        let ends = scan.unwrap_or(&mut self.scan).token_ends();
        let end = |found: &Match| ends.replacement_end(rules.engine, found);
        findings.judge(rules, self.scope, &mut self.spans, None, is_late, end);
        self.uncounted.extend_from_slice(&findings.matches);
    }

    /// Counts the matches that no later match can overlap: the matches before the first group of
    /// overlapping matches that extends beyond the decided part.
    fn count_up_to(&mut self, decided: usize, rules: &RuleContext<'_>, findings: &mut Findings) {
        if self.uncounted.is_empty() {
            return;
        }
        sort_matches(&mut self.uncounted);
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

fn finish_scan(
    scan: &mut ChunkScan,
    scope: Scope,
    rules: &mut RuleContext<'_>,
    findings: &mut Findings,
) -> Result<(), Denial> {
    scan.finish(
        rules.engine,
        rules.profile,
        scope,
        &mut rules.budget,
        rules.scratch,
        &mut findings.matches,
    )?;
    Ok(())
}

/// All texts of a response.
#[derive(Debug, Default)]
pub(crate) struct ResponseTexts {
    /// Texts in use come first.
    texts: Vec<ResponseText>,
    used: usize,
    /// The complete texts.
    complete_texts: CompleteTexts,
    /// Whether texts are scanned at their end, which is cheaper than piece by piece.
    scan_at_end: bool,
    /// Whether the response consists of blocks or items.
    has_blocks: bool,
    /// The masks to restore in a stream, and the resulting growth.
    masks: Option<Masks>,
    growth: ResponseGrowth,
    /// The index of the current event.
    event: usize,
    /// The number of finished texts, and the scan of the next one, if texts are scanned at their end.
    finished_count: usize,
    scan: FullScan,
}

impl ResponseTexts {
    /// Removes all texts; the texts of the next response are scanned at their end or piece by
    /// piece.
    pub(crate) fn reset(&mut self, at_end: bool, in_blocks: bool) {
        self.used = 0;
        self.complete_texts.clear();
        self.scan_at_end = at_end;
        self.has_blocks = in_blocks;
        self.masks = None;
        self.growth = ResponseGrowth::default();
        self.finished_count = 0;
        self.scan = FullScan::default();
    }

    /// Enables restoring of masks in the texts of a stream.
    pub(crate) fn set_masks(&mut self, masks: Masks) {
        self.masks = Some(masks);
    }

    /// Returns the masks to restore, if there are any.
    pub(crate) fn masks(&self) -> Option<&Masks> {
        self.masks.as_ref()
    }

    /// Returns the approximate memory in use, in bytes.
    pub(crate) fn capacity(&self) -> usize {
        let texts = self.texts.iter();
        let strings: usize = texts
            .map(|text| {
                let whole = text.full_text.capacity() + text.key.capacity();
                whole + text.mask_scan.capacity() + text.json.capacity()
            })
            .sum();
        strings + self.texts.capacity() * size_of::<ResponseText>() + self.complete_texts.capacity()
    }

    /// Releases the memory of buffers with more than `most` bytes.
    pub(crate) fn release_memory(&mut self, most: usize) {
        if self.capacity() > most {
            self.used = 0;
            self.texts = Vec::new();
            self.complete_texts.release_memory(most);
        }
    }

    /// Returns the index of the text with this key, adding one for this choice and scope if necessary.
    pub(crate) fn find_or_add(&mut self, key: &str, choice: u64, scope: Scope) -> Result<usize, Denial> {
        let known = self.texts[..self.used].iter().rposition(|text| text.key == key);
        if let Some(number) = known {
            return Ok(number);
        }
        let most = if self.has_blocks {
            MAX_TEXTS_IN_BLOCKS
        } else {
            MAX_TEXTS
        };
        if self.used == most {
            return Err(Denial::TooLarge);
        }
        if self.used == self.texts.len() {
            self.texts.push(ResponseText::default());
        }
        let number = self.used;
        self.used += 1;
        self.texts[number].restart(key, choice, scope);
        Ok(number)
    }

    /// Processes a complete text; returns its index among the [complete texts](ResponseTexts::complete_text) if something in
    /// it may be replaced.
    pub(crate) fn push_complete(
        &mut self,
        (value, scope): (&str, Scope),
        rules: &mut RuleContext<'_>,
        findings: &mut Findings,
    ) -> Result<Option<usize>, Denial> {
        if self.scan_at_end {
            return Ok(Some(self.complete_texts.add(value, scope)));
        }
        let masked = match &self.masks {
            Some(masks) => find_masks(value, masks, &mut self.growth),
            None => Vec::new(),
        };
        self.complete_texts.scan((value, scope), masked, rules, findings)
    }

    /// Adds a piece to a text.
    pub(crate) fn push(
        &mut self,
        number: usize,
        piece: &str,
        rules: &mut RuleContext<'_>,
        findings: &mut Findings,
    ) -> Result<(), Denial> {
        let text = &mut self.texts[number];
        text.event = self.event;
        text.length += piece.len();
        if self.scan_at_end {
            text.full_text.push_str(piece);
            return Ok(());
        }
        if let Some(masks) = &self.masks {
            text.mask_scan.push(piece, masks, &mut self.growth);
        }
        text.push(piece, rules, findings)
    }

    /// Ends the event with the last pieces; `finished` are the choices that ended with it.
    pub(crate) fn finish_event(
        &mut self,
        finished: impl Iterator<Item = u64> + Clone,
        rules: &mut RuleContext<'_>,
        findings: &mut Findings,
    ) -> Result<(), Denial> {
        if self.scan_at_end {
            return Ok(());
        }
        for number in 0..self.used {
            let ResponseText {
                choice,
                event,
                seems_finished: over,
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
                text.flush(rules, findings)?;
            }
            // Tool calls can be interleaved. Their JSON does not end with the beginning of a mask, so nothing is held for
            // long.
            let is_ended = has_finished || goes_on && scope != Scope::ResponseArguments;
            if let Some(masks) = self.masks.as_ref().filter(|_| is_ended) {
                text.mask_scan.finish(masks, &mut self.growth);
            }
        }
        self.event += 1;
        Ok(())
    }

    pub(crate) fn scans_at_end(&self) -> bool {
        self.scan_at_end
    }

    /// Ends the remaining texts, for a time slice if they are scanned at their end.
    pub(crate) fn finish(
        &mut self,
        rules: &mut RuleContext<'_>,
        slice: Duration,
        findings: &mut Findings,
    ) -> Result<Step, Denial> {
        let mut scanned = 0;
        while let Some(text) = self.texts[..self.used].get_mut(self.finished_count) {
            if self.scan_at_end {
                text.decided_len = text.length;
                let whole = (text.full_text.as_str(), text.scope);
                let step = findings.step_scan(&mut self.scan, rules, slice, whole, None, &mut text.spans)?;
                self.finished_count += usize::from(step == Step::Done);
                scanned += text.length;
                // Many short texts are treated like one long text.
                if step == Step::Pending || scanned > MAX_SLICE_BYTES {
                    return Ok(Step::Pending);
                }
            } else {
                text.finish(rules, findings)?;
                if let Some(masks) = &self.masks {
                    text.mask_scan.finish(masks, &mut self.growth);
                }
                self.finished_count += 1;
            }
        }
        self.complete_texts.finish(rules, slice, findings)
    }

    pub(crate) fn get(&self, number: usize) -> &ResponseText {
        &self.texts[number]
    }

    /// Returns a text, and the masks to restore in it.
    pub(crate) fn get_mut(&mut self, number: usize) -> (&mut ResponseText, Option<&Masks>) {
        (&mut self.texts[number], self.masks.as_ref())
    }

    /// Whether nothing can change any more in a text before `end`.
    pub(crate) fn is_decided(&self, number: usize, end: usize) -> bool {
        let text = &self.texts[number];
        if self.masks.is_none() {
            return end <= text.decided_len;
        }
        // The rules must have decided on the whole of a mask.
        let last = end.saturating_sub(1)..end;
        let end = text
            .mask_scan
            .overlapping(&last)
            .map(|masked| masked.range.end)
            .fold(end, usize::max);
        end <= text.decided_len && end <= text.mask_scan.decided_len()
    }

    pub(crate) fn complete_text(&self, number: usize) -> &CompleteText {
        self.complete_texts.get(number)
    }

    /// Marks a complete text as released.
    pub(crate) fn release_complete_text(&mut self, number: usize) {
        self.complete_texts.mark_released(number);
    }

    /// Marks the bytes of a text before `offset` as released.
    pub(crate) fn mark_released(&mut self, number: usize, offset: usize) {
        let text = &mut self.texts[number];
        text.released = offset;
        if self.masks.is_some() {
            let ResponseText {
                mask_scan: masked,
                spans,
                ..
            } = text;
            masked.retain(|masked| !spans.overlaps(&masked.range));
            masked.discard_before(offset);
        }
        // A number or an escape is replaced as a whole.
        let offset = text.json.floor_boundary(offset);
        text.spans.discard_before(offset);
        let first = text.spans.first_start().unwrap_or(offset);
        text.json.discard_before(first.min(offset));
    }
}
