//! Finds the matches of one window of a text, and tracks how far the text is decided.

use crate::fold::{FoldedText, fill_plain, floor_char_boundary};
use crate::hit_search;
use crate::hold::HoldMode;
use crate::match_range::{MatchRange, UndecidedText};
use crate::progress::{Progress, Reach};
use crate::scan::{Evaluation, ReportTarget};
use crate::{Direction, EvaluationError, Match, RuleIndex, Scratch, View};

/// Maximum number of irregular ranges of a window around which needles are searched individually.
const MAX_IRREGULAR_RANGES: usize = 64;
impl Evaluation<'_> {
    /// Finds the matches that begin in the undecided part, up to the end that `reach` determines,
    /// and advances `progress`.
    // Never inlined: once it is inlined into some callers, the compiler treats the remaining copy as cold, and the other
    // callers run that copy.
    #[inline(never)]
    pub(crate) fn scan_window(
        &mut self,
        text: &str,
        place: ReportTarget,
        progress: &mut Progress,
        reach: Reach,
    ) -> Result<(), EvaluationError> {
        let engine = self.engine;
        let Scratch {
            regexes,
            anchors,
            undecided_caches: undecided,
            folded,
            plain,
            hits,
            positions: places,
            digit_prefilter_buffers: residues,
            hold_caches: holds,
            ..
        } = &mut *self.scratch;
        let clock = &mut self.clock;
        clock.charge_pass(text.len() - progress.first_undecided())?;
        let base = if let ReportTarget::AtOffset(base) = place {
            base
        } else {
            0
        };

        let ended = matches!(reach, Reach::End);
        folded.fill(
            engine.fold_table,
            &text[progress.folded_position..],
            progress.previous_byte,
            ended,
        );
        let mut ground = |view: View, bytes, from: usize, origin| {
            let horizon = || floor_char_boundary(bytes, bytes.len().saturating_sub(engine.horizon)).max(from);
            let to = match reach {
                Reach::End => bytes.len(),
                Reach::Horizon => horizon(),
                Reach::Undecided => {
                    let number = undecided_index(self.scope.direction(), view);
                    let automaton = &engine.undecided_automata[number];
                    automaton.first_undecided(&mut undecided[number], bytes, horizon(), clock)?
                }
            };
            Ok(MatchRange {
                bytes,
                from,
                to,
                origin,
            })
        };
        let copy_origin = progress.folded_length - folded.prefix_len();
        let in_text = ground(View::Text, text.as_bytes(), progress.text_position, base)?;
        let in_copy = ground(
            View::Folded,
            folded.bytes(),
            folded.prefix_len() + progress.skip,
            copy_origin,
        )?;

        hits.clear();
        let one_copy =
            folded.is_plain() && progress.folded_position == progress.text_position && progress.skip == 0;
        if one_copy {
            let limit = (in_text.to - in_text.from).max(in_copy.to - in_copy.from);
            let surface = UndecidedText {
                bytes: &in_copy.bytes[in_copy.from..],
                limit,
                view: None,
            };
            hit_search::collect_hits(engine, self.active_rules, &surface, hits);
        } else {
            let copy = in_copy.undecided_text(View::Folded);
            let is_behind = progress.folded_position <= progress.text_position;
            if engine.shares_needles && is_behind && folded.irregular_ranges().len() <= MAX_IRREGULAR_RANGES {
                let text = in_text.undecided_text(View::Text);
                let place_in_text = |place| {
                    let place = progress.folded_position + folded.text_start(in_copy.from + place);
                    place.checked_sub(in_text.from)
                };
                hit_search::collect_hits_in_both_copies(
                    engine,
                    self.active_rules,
                    (&text, &copy),
                    place_in_text,
                    hits,
                );
                let odd = folded.irregular_ranges().iter().map(|part| {
                    let [start, end] = [part.start, part.end]
                        .map(|place| (progress.folded_position + place).saturating_sub(in_text.from));
                    start..end
                });
                hit_search::collect_irregular_hits(engine, self.active_rules, &text, odd, plain, hits);
            } else {
                hit_search::collect_hits(engine, self.active_rules, &copy, hits);
                if engine.has_text_rules {
                    fill_plain(plain, &in_text.bytes[in_text.from..]);
                    let text = UndecidedText {
                        bytes: plain,
                        ..in_text.undecided_text(View::Text)
                    };
                    hit_search::collect_hits(engine, self.active_rules, &text, hits);
                }
            }
        }

        let mut looked_at = None;
        for (sieve, residue) in engine.digit_prefilters.iter().zip(residues) {
            let ground = if sieve.view == View::Text {
                &in_text
            } else {
                &in_copy
            };
            if looked_at.replace(sieve.view) != Some(sieve.view) {
                places.fill(ground.bytes, ground.from);
            }
            sieve.collect_hits(self.active_rules, ground, places, residue, hits, clock)?;
        }
        hit_search::join_hits(engine, hits, [&in_text, &in_copy], anchors, clock)?;
        for hits in hits.chunk_by(|one, other| one.rule == other.rule) {
            let index = hits[0].rule;
            let rule = &engine.rules[index.position()];
            let ground = if rule.view == View::Text {
                &in_text
            } else {
                &in_copy
            };
            let caches = &mut regexes[index.position()];
            let consumed = progress.consumed_end(index).saturating_sub(ground.origin);
            let consumed = rule.search(caches, ground, hits, consumed, clock, |start, end| {
                let (start, end) = match rule.view {
                    View::Text => (start, end),
                    View::Folded => (
                        progress.folded_position + folded.text_start(start),
                        progress.folded_position + folded.text_end(end),
                    ),
                };
                report_match(self.matches, index, start, end, place);
            })?;
            if consumed > ground.to {
                progress.consume(index, ground.origin + consumed);
            }
        }

        if let (Reach::Undecided, HoldMode::MatchStarts(hold)) = (reach, self.hold_mode) {
            let caches = Scratch::caches_for(holds, hold);
            let in_text = hold.first_start(View::Text, caches, in_text.bytes, in_text.to, clock)?;
            let waits = hold.first_start(View::Folded, caches, in_copy.bytes, in_copy.to, clock)?;
            progress.hold_start = in_text.min(progress.folded_position + source_length(folded, waits));
        }
        let (text_decided, copy_decided) = (in_text.origin + in_text.to, in_copy.origin + in_copy.to);
        progress
            .consumed
            .retain(|(rule, end)| match engine.rules[rule.position()].view {
                View::Text => *end > text_decided,
                View::Folded => *end > copy_decided,
            });
        progress.text_position = in_text.to;
        let to = in_copy.to;
        let character = folded.character_start(to);
        progress.previous_byte = folded.bytes()[..character].last().copied();
        progress.folded_length += character - folded.prefix_len();
        progress.skip = to - character;
        progress.folded_position += source_length(folded, to);
        Ok(())
    }
}

/// Returns how many bytes of the text produced the copy before `place`.
fn source_length(folded: &FoldedText, place: usize) -> usize {
    if place == folded.bytes().len() {
        folded.text_length()
    } else {
        folded.text_start(place)
    }
}

fn report_match(found: &mut Vec<Match>, rule: RuleIndex, start: usize, end: usize, place: ReportTarget) {
    match place {
        ReportTarget::AtOffset(base) => found.push(Match {
            rule,
            start: base + start,
            end: base + end,
        }),
        ReportTarget::Within {
            start: begin,
            end,
            plain,
            known,
        } => {
            let start = begin + start.min(plain);
            let found_again = Match { rule, start, end };
            if !found[known..].contains(&found_again) {
                found.push(found_again);
            }
        }
    }
}

fn undecided_index(direction: Direction, view: View) -> usize {
    match (direction, view) {
        (Direction::Request, View::Text) => 0,
        (Direction::Request, View::Folded) => 1,
        (Direction::Response, View::Text) => 2,
        (Direction::Response, View::Folded) => 3,
    }
}
