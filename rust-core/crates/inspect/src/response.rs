use std::ops::Range;
use std::time::Duration;

use proofgate_json::Workspace;
use proofgate_policy::{Budget, Direction, Engine, Judgement, Profile, Scope, Scratch, Step};
use proofgate_providers::{
    BodyText, Dialect, DocumentKind, EventReader, GeneratedText, StreamEvent, StringLocation,
};

use crate::buffered_events::{BufferedEvents, EventPart};
use crate::counts::ReplacementCounts;
use crate::denial::Denial;
use crate::findings::{Findings, RuleContext};
use crate::guard::CallGuard;
use crate::masks::Masks;
use crate::spans::Spans;
use crate::text_scan::FullScan;
use crate::texts::ResponseTexts;

/// Whether any rule applies to responses; if not, they need not be inspected.
pub fn inspects_responses(profile: &Profile) -> bool {
    !profile.is_idle(Direction::Response)
}

/// The form in which a response is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseKind {
    /// One body.
    Unary,
    /// A stream of server-sent events (`text/event-stream`).
    Events,
}

/// Buffers for reading a document of a response, reused for any other document.
#[derive(Debug, Default)]
pub struct ReadBuffers {
    workspace: Workspace,
    generated: GeneratedText,
    other: BodyText,
    key: String,
}

impl ReadBuffers {
    /// Releases the memory of buffers with more than `most` bytes.
    pub fn release_memory(&mut self, most: usize) {
        if self.generated.capacity() > most {
            self.generated.release_memory(most);
        }
        if self.other.capacity() > most {
            self.other.release_memory(most);
        }
        if self.workspace.capacity() > most {
            self.workspace.release_memory(most);
        }
        self.key.clear();
        self.key.shrink_to(most);
    }
}

/// Inspects one response while it is relayed.
///
/// A whole body is held until its end. In a stream, every event is held until no rule can redact or deny its text any more,
/// or until the text appears to be finished because its choice has finished or has moved on to another text. Events keep
/// their order. Text that the rules do not redact is passed on byte for byte. A redacted event also loses its `logprobs`,
/// which repeat the text.
///
/// Held data is in memory once. At the end of a whole response, its texts are also in memory until it is
/// [finished](ResponseInspector::finish_step), and so is the rewritten response if something is redacted.
#[derive(Debug)]
pub struct ResponseInspector {
    kind: ResponseKind,
    limit: usize,
    events: EventReader,
    inspection: Inspection,
    /// The remaining budget for the end of the response, once that has begun.
    final_budget: Option<Budget>,
    denial: Option<Denial>,
}

impl ResponseInspector {
    /// Creates an inspector for a response in `dialect` that holds at most `limit` bytes of it.
    pub fn new(dialect: Dialect, kind: ResponseKind, limit: usize) -> Self {
        let mut inspector = ResponseInspector {
            kind,
            limit,
            events: EventReader::new(limit),
            inspection: Inspection::new(dialect),
            final_budget: None,
            denial: None,
        };
        inspector.reset(dialect, kind);
        inspector
    }

    /// Resets the inspector for the next response, which is in `dialect`; keeps the buffers.
    pub fn reset(&mut self, dialect: Dialect, kind: ResponseKind) {
        self.kind = kind;
        self.events.clear();
        self.inspection.reset(dialect, kind);
        self.final_budget = None;
        self.denial = None;
    }

    /// Restores masked values in the texts of a streamed response, even where a mask is split across events: a possible
    /// beginning of a mask is held until it is decided. The rules see the masks, and a mask that they partly replace is not
    /// restored.
    pub fn set_masks(&mut self, masks: Masks) {
        self.inspection.texts.set_masks(masks);
    }

    /// Denies or records calls of guarded tools. A denied whole response is not delivered; a denied
    /// stream delivers no part of the call. A call whose name can become that of a guarded tool is
    /// held until the name is complete.
    pub fn set_call_guard(&mut self, guard: CallGuard) {
        self.inspection.guard = Some(guard);
    }

    /// Returns the guard for calls of guarded tools, if there is one.
    pub fn call_guard(&self) -> Option<&CallGuard> {
        self.inspection.guard.as_ref()
    }

    /// Processes the next bytes of the response and appends to `out` the bytes that may be sent to
    /// the client.
    ///
    /// # Errors
    /// [`Denial`]: the response may not continue. The bytes appended to `out` may still be sent.
    /// Every later call returns the same error.
    pub fn push(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scratch: &mut Scratch,
        reading: &mut ReadBuffers,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Denial> {
        self.run_unless_stopped(|inspector| match inspector.kind {
            ResponseKind::Unary => {
                let held = &mut inspector.inspection.buffered;
                if bytes.len() > inspector.limit.saturating_sub(held.len()) {
                    return Err(Denial::TooLarge);
                }
                held.append(bytes);
                Ok(())
            }
            ResponseKind::Events => {
                inspector.events.push(bytes);
                let mut rules = RuleContext {
                    engine,
                    profile,
                    // The part of an event that arrived before is judged with the rest of it.
                    budget: engine.budget(inspector.events.pending()),
                    scratch,
                };
                while let Some(event) = inspector.events.next_event().map_err(|_| Denial::TooLarge)? {
                    inspector.inspection.inspect_event(&event, reading, &mut rules)?;
                    inspector.inspection.release(engine, out)?;
                    if inspector.inspection.buffered.len() > inspector.limit {
                        return Err(Denial::TooLarge);
                    }
                }
                Ok(())
            }
        })
    }

    /// Ends the response and appends the rest of it to `out`.
    ///
    /// # Errors
    /// Same as [`push`](ResponseInspector::push).
    pub fn finish(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scratch: &mut Scratch,
        reading: &mut ReadBuffers,
        out: &mut Vec<u8>,
    ) -> Result<(), Denial> {
        while self.finish_step(engine, profile, scratch, reading, Duration::MAX, out)? == Step::Pending {}
        Ok(())
    }

    /// Like [`finish`](ResponseInspector::finish), but for about `slice` of CPU time only: a whole response is judged at its
    /// end, and other requests must be served meanwhile. Has to be called until it is done.
    ///
    /// # Errors
    /// Same as [`push`](ResponseInspector::push).
    pub fn finish_step(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scratch: &mut Scratch,
        reading: &mut ReadBuffers,
        slice: Duration,
        out: &mut Vec<u8>,
    ) -> Result<Step, Denial> {
        self.run_unless_stopped(|inspector| {
            let has_begun = inspector.final_budget.is_some();
            let budget = inspector.final_budget.take();
            let mut rules = RuleContext {
                engine,
                profile,
                budget: budget.unwrap_or_else(|| {
                    engine.budget(inspector.inspection.buffered.len() + inspector.events.pending())
                }),
                scratch,
            };
            let inspection = &mut inspector.inspection;
            if !has_begun {
                inspection.start_finish(inspector.kind, &mut inspector.events, reading, &mut rules)?;
            }
            let step = inspection.judge_remaining(reading, &mut rules, slice)?;
            inspector.final_budget = Some(rules.budget);
            if step == Step::Done {
                if let Some(guard) = &mut inspection.guard {
                    guard.finish();
                }
                inspection.release(engine, out)?;
            }
            Ok(step)
        })
    }

    /// Returns the approximate memory in use, in bytes.
    pub fn capacity(&self) -> usize {
        self.events.capacity() + self.inspection.capacity()
    }

    /// Discards the held part of the response, which ends the inspection but keeps its results, and shrinks buffers with
    /// more than `most` bytes.
    pub fn release_memory(&mut self, most: usize) {
        self.events.release_memory(most);
        self.inspection.release_memory(most);
    }

    /// Returns the rules that matched so far, the score of the response, and whether an enforced policy would block.
    pub fn judgement(&self) -> &Judgement {
        &self.inspection.findings.judgement
    }

    /// Whether anything was replaced, or will be.
    pub fn is_redacted(&self) -> bool {
        !self.redaction_counts().is_empty()
    }

    /// Whether a comment in the stream reported the redactions before the final event.
    pub fn is_redaction_reported(&self) -> bool {
        self.inspection.is_redaction_reported
    }

    /// Returns how often each rule found a value that was replaced, or will be.
    pub fn redaction_counts(&self) -> &ReplacementCounts {
        self.inspection.findings.redaction_counts()
    }

    fn run_unless_stopped<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Denial>,
    ) -> Result<T, Denial> {
        if let Some(stop) = self.denial {
            return Err(stop);
        }
        let done = work(self);
        self.denial = done.as_ref().err().copied();
        done
    }
}

/// The state of the inspection of a response.
#[derive(Debug)]
struct Inspection {
    dialect: Dialect,
    texts: ResponseTexts,
    buffered: BufferedEvents,
    findings: Findings,
    /// A whole response of unknown shape, which is scanned at its end.
    unknown_document: Option<UnknownDocument>,
    /// Whether a comment in the stream reports the redactions.
    is_redaction_reported: bool,
    guard: Option<CallGuard>,
}

/// The text of a document of unknown shape, and the progress of its scan.
#[derive(Debug, Default)]
struct UnknownDocument {
    text: BodyText,
    scan: FullScan,
    spans: Spans,
}

impl Inspection {
    fn new(dialect: Dialect) -> Self {
        Inspection {
            dialect,
            texts: ResponseTexts::default(),
            buffered: BufferedEvents::default(),
            findings: Findings::default(),
            unknown_document: None,
            is_redaction_reported: false,
            guard: None,
        }
    }

    fn reset(&mut self, dialect: Dialect, kind: ResponseKind) {
        self.dialect = dialect;
        let in_blocks = matches!(dialect, Dialect::Messages | Dialect::Responses);
        self.texts.reset(kind == ResponseKind::Unary, in_blocks);
        self.buffered.clear();
        self.findings = Findings::default();
        self.unknown_document = None;
        self.is_redaction_reported = false;
        self.guard = None;
    }

    fn capacity(&self) -> usize {
        let whole = self
            .unknown_document
            .as_ref()
            .map_or(0, |whole| whole.text.capacity());
        let guard = self.guard.as_ref().map_or(0, CallGuard::capacity);
        self.buffered.capacity() + self.texts.capacity() + self.findings.capacity() + whole + guard
    }

    fn release_memory(&mut self, most: usize) {
        self.buffered.release_memory(most);
        self.texts.release_memory(most);
        self.findings.release_memory(most);
        self.unknown_document = None;
    }

    /// Processes the remaining part at the end of a response: all of it unless it is a stream.
    fn start_finish(
        &mut self,
        kind: ResponseKind,
        events: &mut EventReader,
        reading: &mut ReadBuffers,
        rules: &mut RuleContext<'_>,
    ) -> Result<(), Denial> {
        match kind {
            ResponseKind::Unary => {
                self.buffered.mark_complete();
                let document = self.buffered.take_complete();
                self.inspect_document(&document, |offset| offset, b"\n", reading, rules)?;
                self.buffered.restore_complete(document);
                Ok(())
            }
            ResponseKind::Events => match events.finish().map_err(|_| Denial::TooLarge)? {
                Some(event) => self.inspect_event(&event, reading, rules),
                None => Ok(()),
            },
        }
    }

    /// Judges the remaining texts for a time slice.
    fn judge_remaining(
        &mut self,
        reading: &mut ReadBuffers,
        rules: &mut RuleContext<'_>,
        slice: Duration,
    ) -> Result<Step, Denial> {
        if let Some(UnknownDocument { text, scan, spans }) = &mut self.unknown_document {
            if self.findings.step_scan(
                scan,
                rules,
                slice,
                (text.text(), Scope::Response),
                Some(&*text),
                spans,
            )? == Step::Pending
            {
                return Ok(Step::Pending);
            }
            let UnknownDocument { text, spans, .. } = self.unknown_document.take().unwrap_or_default();
            let document = self.buffered.take_complete();
            self.replace(&document, &text, spans, |offset| offset, b"\n", rules.engine);
            self.buffered.restore_complete(document);
            reading.other = text;
        }
        self.texts.finish(rules, slice, &mut self.findings)
    }

    fn inspect_event(
        &mut self,
        event: &StreamEvent<'_>,
        reading: &mut ReadBuffers,
        rules: &mut RuleContext<'_>,
    ) -> Result<(), Denial> {
        self.buffered.push(event.raw);
        match event.data {
            Some(b"[DONE]") => {
                // Most clients stop reading here.
                let counts = self.findings.redaction_counts();
                if !counts.is_empty() {
                    self.is_redaction_reported = true;
                    self.buffered.add_part(EventPart::Replaced {
                        raw: 0..0,
                        by: counts.sse_comment(rules.engine),
                    });
                }
                Ok(())
            }
            Some(data) => self.inspect_document(
                data,
                |offset| event.raw_offset(offset),
                b"\ndata: ",
                reading,
                rules,
            ),
            // Event stream clients ignore such lines, but another client may read them.
            None if event.has_unknown_fields => {
                self.inspect_unknown(event.raw, |offset| offset, b"\n", reading, rules)
            }
            None => Ok(()),
        }
    }

    /// Inspects a document: the data of the last event, or a whole response. `locate` maps an
    /// offset of the document to an offset in the event's bytes; `line_break` is the form of a
    /// document's line break in the event.
    fn inspect_document(
        &mut self,
        document: &[u8],
        locate: impl Fn(usize) -> usize,
        line_break: &[u8],
        reading: &mut ReadBuffers,
        rules: &mut RuleContext<'_>,
    ) -> Result<(), Denial> {
        let first = document.trim_ascii_start().first();
        if let Some(guard) = &mut self.guard
            && matches!(first, Some(b'{' | b'['))
        {
            match guard.inspect_document(self.dialect, document, &mut reading.workspace) {
                // A text that only begins like a list.
                Err(Denial::Malformed) if first == Some(&b'[') => {}
                looked => looked?,
            }
        }
        if first != Some(&b'{') {
            return self.inspect_unknown(document, locate, line_break, reading, rules);
        }
        match reading
            .generated
            .read(self.dialect, document, &mut reading.workspace)
        {
            Ok(_) if reading.generated.overflowed() => Err(Denial::TooLarge),
            Ok(DocumentKind::Known) => self.inspect_generated(locate, reading, rules),
            Ok(DocumentKind::Other) => self.inspect_unknown(document, locate, line_break, reading, rules),
            Err(_) => Err(Denial::Malformed),
        }
    }

    fn inspect_generated(
        &mut self,
        locate: impl Fn(usize) -> usize,
        reading: &mut ReadBuffers,
        rules: &mut RuleContext<'_>,
    ) -> Result<(), Denial> {
        let Inspection {
            texts,
            buffered: held,
            findings,
            ..
        } = self;
        let ReadBuffers { generated, key, .. } = reading;
        let mut logprobs = generated.logprobs().iter().peekable();
        for part in generated.parts() {
            while let Some(range) = logprobs.next_if(|range| range.start < part.location.raw.start) {
                held.add_part(EventPart::Logprobs(locate(range.start)..locate(range.end)));
            }
            let piece = generated.value(part);
            if piece.is_empty() {
                continue;
            }
            // A string contains no line break, so it is within one line of the event.
            let start = locate(part.location.raw.start);
            let place = StringLocation {
                raw: start..start + part.location.raw.len(),
                has_escapes: part.location.has_escapes,
            };
            if part.is_complete {
                let written = part.encoding;
                let single = texts.push_complete((piece, generated.scope(part)), rules, findings)?;
                if let Some(text) = single {
                    held.add_part(EventPart::CompleteText { text, place, written });
                }
                continue;
            }
            key.clear();
            generated.write_key(part, key);
            let text = texts.find_or_add(key, generated.choice_index(part), generated.scope(part))?;
            let before = texts.get(text).length;
            texts.push(text, piece, rules, findings)?;
            held.add_part(EventPart::Text {
                text,
                range: before..before + piece.len(),
                place,
            });
        }
        for range in logprobs {
            held.add_part(EventPart::Logprobs(locate(range.start)..locate(range.end)));
        }
        texts.finish_event(generated.finished(), rules, findings)
    }

    /// Inspects a document of unknown shape as a separate text: its JSON strings, or all of it.
    fn inspect_unknown(
        &mut self,
        document: &[u8],
        locate: impl Fn(usize) -> usize,
        line_break: &[u8],
        reading: &mut ReadBuffers,
        rules: &mut RuleContext<'_>,
    ) -> Result<(), Denial> {
        let text = std::str::from_utf8(document).map_err(|_| Denial::Malformed)?;
        let ReadBuffers { other, workspace, .. } = reading;
        if other.collect(document, workspace).is_err() {
            other.collect_plain_text(text);
        }
        if other.overflowed() {
            return Err(Denial::TooLarge);
        }
        if self.texts.scans_at_end() {
            self.unknown_document = Some(UnknownDocument {
                text: std::mem::take(other),
                ..UnknownDocument::default()
            });
            return Ok(());
        }
        let mut spans = Spans::default();
        self.findings
            .scan_text(rules, (other.text(), Scope::Response), Some(&*other), &mut spans)?;
        self.replace(document, other, spans, locate, line_break, rules.engine);
        Ok(())
    }

    /// Replaces the document, whose text is `text`, with a version in which these parts of the text are replaced.
    fn replace(
        &mut self,
        document: &[u8],
        text: &BodyText,
        spans: Spans,
        locate: impl Fn(usize) -> usize,
        line_break: &[u8],
        engine: &Engine,
    ) {
        let masks = self.texts.masks();
        if spans.is_empty() && masks.is_none() {
            return;
        }
        let redactions = spans.into_redactions();
        let names: Vec<String> = redactions
            .iter()
            .map(|redaction| redaction.replacement(engine))
            .collect();
        let edits: Vec<(Range<usize>, &str)> = redactions
            .iter()
            .zip(&names)
            .map(|(redaction, name)| (redaction.range.clone(), name.as_str()))
            .collect();
        let mut rewritten = Vec::new();
        match edits.is_empty() {
            true => rewritten.extend_from_slice(document),
            false => {
                text.rewrite(document, &edits, &mut rewritten);
            }
        }
        if let Some(masks) = masks {
            masks.unmask(&mut rewritten);
        }
        if rewritten == document {
            return;
        }
        let lines: Vec<&[u8]> = rewritten.split(|byte| *byte == b'\n').collect();
        self.buffered.add_part(EventPart::Replaced {
            raw: locate(0)..locate(document.len()),
            by: lines.join(line_break),
        });
    }

    fn release(&mut self, engine: &Engine, out: &mut Vec<u8>) -> Result<(), Denial> {
        self.findings.check_not_blocked()?;
        if self.guard.as_ref().is_some_and(CallGuard::must_buffer) {
            return Ok(());
        }
        self.buffered.release(&mut self.texts, engine, out);
        Ok(())
    }
}
