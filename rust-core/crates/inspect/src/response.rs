use std::ops::Range;
use std::time::Duration;

use proofgate_json::Workspace;
use proofgate_policy::{Budget, Direction, Engine, Judgement, Profile, Scope, Scratch, Step};
use proofgate_providers::{BodyText, Dialect, EventReader, GeneratedText, Place, Shape, StreamEvent};

use crate::counts::Counts;
use crate::denial::Denial;
use crate::findings::{Findings, Rules};
use crate::guard::CallGuard;
use crate::held::{HeldEvents, Part};
use crate::marked::WholeScan;
use crate::masks::Masks;
use crate::spans::Spans;
use crate::texts::Texts;

/// Whether any rule looks at answers; if not, they need not be inspected.
pub fn needs_response(profile: &Profile) -> bool {
    !profile.is_idle(Direction::Response)
}

/// How an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerKind {
    /// As one body.
    Unary,
    /// As a stream of server-sent events (`text/event-stream`).
    Events,
}

/// What reading a document of an answer needs, and the next one can use again, whichever answer it is of.
#[derive(Debug, Default)]
pub struct Reading {
    workspace: Workspace,
    generated: GeneratedText,
    other: BodyText,
    key: String,
}

impl Reading {
    /// Gives back the memory of a buffer that has more than `most` bytes.
    pub fn give_back(&mut self, most: usize) {
        if self.generated.capacity() > most {
            self.generated.give_back(most);
        }
        if self.other.capacity() > most {
            self.other.give_back(most);
        }
        if self.workspace.capacity() > most {
            self.workspace.give_back(most);
        }
        self.key.clear();
        self.key.shrink_to(most);
    }
}

/// Inspects one answer as it passes.
///
/// A whole body is held until its end. Of a stream, every event is held until no rule can redact or deny its text any more,
/// or until the text seems to be over because its choice has finished or has gone on to another text; events keep their
/// order. What the rules do not redact leaves byte for byte as it came. A redacted event also loses its `logprobs`, which
/// repeat the text.
///
/// What is held is in memory once. At the end of a whole answer, its texts are beside it until it is
/// [finished](ResponseInspector::finish_step), and what it becomes where something is redacted.
#[derive(Debug)]
pub struct ResponseInspector {
    kind: AnswerKind,
    limit: usize,
    events: EventReader,
    inspection: Inspection,
    /// What is left of the budget of the end, once it has begun.
    ending: Option<Budget>,
    stopped: Option<Denial>,
}

impl ResponseInspector {
    /// An inspector of an answer in `dialect` that holds at most `limit` bytes of it.
    pub fn new(dialect: Dialect, kind: AnswerKind, limit: usize) -> Self {
        let mut inspector = ResponseInspector {
            kind,
            limit,
            events: EventReader::new(limit),
            inspection: Inspection::of(dialect),
            ending: None,
            stopped: None,
        };
        inspector.reset(dialect, kind);
        inspector
    }

    /// Forgets everything, for the next answer, which is one in `dialect`; keeps the buffers.
    pub fn reset(&mut self, dialect: Dialect, kind: AnswerKind) {
        self.kind = kind;
        self.events.clear();
        self.inspection.reset(dialect, kind);
        self.ending = None;
        self.stopped = None;
    }

    /// Has what masks stand for in the texts of a streamed answer put back, also where one is cut by its events: what can be the
    /// beginning of a mask is held until that is known. The rules see the masks, and what they replace a part of stays away.
    pub fn put_back(&mut self, masks: Masks) {
        self.inspection.texts.put_back(masks);
    }

    /// Has calls of guarded tools denied, or noted: of a whole answer nothing leaves then, of a stream nothing of the call. A call
    /// whose name can become that of one is held until that is complete.
    pub fn guard_calls(&mut self, guard: CallGuard) {
        self.inspection.guard = Some(guard);
    }

    /// What looks for calls of guarded tools, if anything does.
    pub fn call_guard(&self) -> Option<&CallGuard> {
        self.inspection.guard.as_ref()
    }

    /// Takes the next bytes of the answer and appends to `out` what may go to the client.
    ///
    /// # Errors
    /// [`Denial`]: the answer may not go on. What was appended to `out` may still leave. So does every later call.
    pub fn push(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scratch: &mut Scratch,
        reading: &mut Reading,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Denial> {
        self.guard(|inspector| match inspector.kind {
            AnswerKind::Unary => {
                let held = &mut inspector.inspection.held;
                if bytes.len() > inspector.limit.saturating_sub(held.len()) {
                    return Err(Denial::TooLarge);
                }
                held.append(bytes);
                Ok(())
            }
            AnswerKind::Events => {
                inspector.events.push(bytes);
                let mut rules = Rules {
                    engine,
                    profile,
                    // What has come of an event before is judged with the rest of it.
                    budget: engine.budget(inspector.events.pending()),
                    scratch,
                };
                while let Some(event) = inspector.events.next_event().map_err(|_| Denial::TooLarge)? {
                    inspector.inspection.event(&event, reading, &mut rules)?;
                    inspector.inspection.release(engine, out)?;
                    if inspector.inspection.held.len() > inspector.limit {
                        return Err(Denial::TooLarge);
                    }
                }
                Ok(())
            }
        })
    }

    /// Ends the answer and appends to `out` what is left of it.
    ///
    /// # Errors
    /// As for [`push`](ResponseInspector::push).
    pub fn finish(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scratch: &mut Scratch,
        reading: &mut Reading,
        out: &mut Vec<u8>,
    ) -> Result<(), Denial> {
        while self.finish_step(engine, profile, scratch, reading, Duration::MAX, out)? == Step::Pending {}
        Ok(())
    }

    /// As [`finish`](ResponseInspector::finish), but for about `slice` of the processor's time only: a whole answer is judged
    /// at its end, and others must be served meanwhile. Has to be called until it is done.
    ///
    /// # Errors
    /// As for [`push`](ResponseInspector::push).
    pub fn finish_step(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scratch: &mut Scratch,
        reading: &mut Reading,
        slice: Duration,
        out: &mut Vec<u8>,
    ) -> Result<Step, Denial> {
        self.guard(|inspector| {
            let has_begun = inspector.ending.is_some();
            let budget = inspector.ending.take();
            let mut rules = Rules {
                engine,
                profile,
                budget: budget.unwrap_or_else(|| {
                    engine.budget(inspector.inspection.held.len() + inspector.events.pending())
                }),
                scratch,
            };
            let inspection = &mut inspector.inspection;
            if !has_begun {
                inspection.begin_end(inspector.kind, &mut inspector.events, reading, &mut rules)?;
            }
            let step = inspection.end_step(reading, &mut rules, slice)?;
            inspector.ending = Some(rules.budget);
            if step == Step::Done {
                if let Some(guard) = &mut inspection.guard {
                    guard.finish();
                }
                inspection.release(engine, out)?;
            }
            Ok(step)
        })
    }

    /// Bytes of memory that it takes, for the most part.
    pub fn capacity(&self) -> usize {
        self.events.capacity() + self.inspection.capacity()
    }

    /// Forgets what is held of the answer, which ends the inspection but not what it came to, and gives back the memory of
    /// a buffer that has more than `most` bytes.
    pub fn give_back(&mut self, most: usize) {
        self.events.give_back(most);
        self.inspection.give_back(most);
    }

    /// The rules that matched so far, the score of the answer, and whether an enforced policy would block.
    pub fn judgement(&self) -> &Judgement {
        &self.inspection.findings.judgement
    }

    /// Whether anything was replaced, or will be.
    pub fn is_redacted(&self) -> bool {
        !self.redacted().is_empty()
    }

    /// Whether a comment in the stream said what was redacted, before the event that ends it.
    pub fn is_told(&self) -> bool {
        self.inspection.is_told
    }

    /// How often each rule has found what was replaced, or will be.
    pub fn redacted(&self) -> &Counts {
        self.inspection.findings.redacted()
    }

    fn guard<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, Denial>) -> Result<T, Denial> {
        if let Some(stop) = self.stopped {
            return Err(stop);
        }
        let done = work(self);
        self.stopped = done.as_ref().err().copied();
        done
    }
}

/// What is known of an answer.
#[derive(Debug)]
struct Inspection {
    dialect: Dialect,
    texts: Texts,
    held: HeldEvents,
    findings: Findings,
    /// A whole answer of no known shape, which is scanned at its end.
    whole: Option<Whole>,
    /// Whether a comment in the stream says what was redacted.
    is_told: bool,
    guard: Option<CallGuard>,
}

/// The text of a document of no known shape, and how far its scan is.
#[derive(Debug, Default)]
struct Whole {
    text: BodyText,
    scan: WholeScan,
    spans: Spans,
}

impl Inspection {
    fn of(dialect: Dialect) -> Self {
        Inspection {
            dialect,
            texts: Texts::default(),
            held: HeldEvents::default(),
            findings: Findings::default(),
            whole: None,
            is_told: false,
            guard: None,
        }
    }

    fn reset(&mut self, dialect: Dialect, kind: AnswerKind) {
        self.dialect = dialect;
        let in_blocks = matches!(dialect, Dialect::Messages | Dialect::Responses);
        self.texts.reset(kind == AnswerKind::Unary, in_blocks);
        self.held.clear();
        self.findings = Findings::default();
        self.whole = None;
        self.is_told = false;
        self.guard = None;
    }

    fn capacity(&self) -> usize {
        let whole = self.whole.as_ref().map_or(0, |whole| whole.text.capacity());
        let guard = self.guard.as_ref().map_or(0, CallGuard::capacity);
        self.held.capacity() + self.texts.capacity() + self.findings.capacity() + whole + guard
    }

    fn give_back(&mut self, most: usize) {
        self.held.give_back(most);
        self.texts.give_back(most);
        self.findings.give_back(most);
        self.whole = None;
    }

    /// Takes what there is at the end of an answer: all of it if it is no stream.
    fn begin_end(
        &mut self,
        kind: AnswerKind,
        events: &mut EventReader,
        reading: &mut Reading,
        rules: &mut Rules<'_>,
    ) -> Result<(), Denial> {
        match kind {
            AnswerKind::Unary => {
                self.held.begin_whole();
                let document = self.held.lend_whole();
                self.document(&document, |offset| offset, b"\n", reading, rules)?;
                self.held.bring_back_whole(document);
                Ok(())
            }
            AnswerKind::Events => match events.finish().map_err(|_| Denial::TooLarge)? {
                Some(event) => self.event(&event, reading, rules),
                None => Ok(()),
            },
        }
    }

    /// Judges what is left, for a slice of time.
    fn end_step(
        &mut self,
        reading: &mut Reading,
        rules: &mut Rules<'_>,
        slice: Duration,
    ) -> Result<Step, Denial> {
        if let Some(Whole { text, scan, spans }) = &mut self.whole {
            if self.findings.step(
                scan,
                rules,
                slice,
                (text.text(), Scope::Answer),
                Some(&*text),
                spans,
            )? == Step::Pending
            {
                return Ok(Step::Pending);
            }
            let Whole { text, spans, .. } = self.whole.take().unwrap_or_default();
            let document = self.held.lend_whole();
            self.replace(&document, &text, spans, |offset| offset, b"\n", rules.engine);
            self.held.bring_back_whole(document);
            reading.other = text;
        }
        self.texts.finish(rules, slice, &mut self.findings)
    }

    fn event(
        &mut self,
        event: &StreamEvent<'_>,
        reading: &mut Reading,
        rules: &mut Rules<'_>,
    ) -> Result<(), Denial> {
        self.held.push(event.raw);
        match event.data {
            Some(b"[DONE]") => {
                // Most clients read no further.
                let counts = self.findings.redacted();
                if !counts.is_empty() {
                    self.is_told = true;
                    self.held.add(Part::Replaced {
                        raw: 0..0,
                        by: counts.comment(rules.engine),
                    });
                }
                Ok(())
            }
            Some(data) => self.document(data, |offset| event.locate(offset), b"\ndata: ", reading, rules),
            // No client of event streams reads such lines; another one may.
            None if event.unknown_fields => self.other(event.raw, |offset| offset, b"\n", reading, rules),
            None => Ok(()),
        }
    }

    /// Inspects a document: the data of the event that was taken last, or a whole answer. `locate` says where in the
    /// event's bytes an offset of the document stands, `line_break` how a line break of it is written there.
    fn document(
        &mut self,
        document: &[u8],
        locate: impl Fn(usize) -> usize,
        line_break: &[u8],
        reading: &mut Reading,
        rules: &mut Rules<'_>,
    ) -> Result<(), Denial> {
        let first = document.trim_ascii_start().first();
        if let Some(guard) = &mut self.guard
            && matches!(first, Some(b'{' | b'['))
        {
            match guard.document(self.dialect, document, &mut reading.workspace) {
                // Text that only begins like a list.
                Err(Denial::Malformed) if first == Some(&b'[') => {}
                looked => looked?,
            }
        }
        if first != Some(&b'{') {
            return self.other(document, locate, line_break, reading, rules);
        }
        match reading
            .generated
            .read(self.dialect, document, &mut reading.workspace)
        {
            Ok(_) if reading.generated.overflowed() => Err(Denial::TooLarge),
            Ok(Shape::Known) => self.generated(locate, reading, rules),
            Ok(Shape::Other) => self.other(document, locate, line_break, reading, rules),
            Err(_) => Err(Denial::Malformed),
        }
    }

    fn generated(
        &mut self,
        locate: impl Fn(usize) -> usize,
        reading: &mut Reading,
        rules: &mut Rules<'_>,
    ) -> Result<(), Denial> {
        let Inspection {
            texts,
            held,
            findings,
            ..
        } = self;
        let Reading { generated, key, .. } = reading;
        let mut logprobs = generated.logprobs().iter().peekable();
        for part in generated.parts() {
            while let Some(range) = logprobs.next_if(|range| range.start < part.place.raw.start) {
                held.add(Part::Logprobs(locate(range.start)..locate(range.end)));
            }
            let piece = generated.value(part);
            if piece.is_empty() {
                continue;
            }
            // A line break is no character of a string, so a string stands in one line of the event.
            let start = locate(part.place.raw.start);
            let place = Place {
                raw: start..start + part.place.raw.len(),
                escaped: part.place.escaped,
            };
            if part.whole {
                let written = part.written;
                let single = texts.push_single((piece, generated.scope(part)), rules, findings)?;
                if let Some(text) = single {
                    held.add(Part::Single { text, place, written });
                }
                continue;
            }
            key.clear();
            generated.write_key(part, key);
            let text = texts.number(key, generated.choice_index(part), generated.scope(part))?;
            let before = texts.get(text).length;
            texts.push(text, piece, rules, findings)?;
            held.add(Part::Text {
                text,
                range: before..before + piece.len(),
                place,
            });
        }
        for range in logprobs {
            held.add(Part::Logprobs(locate(range.start)..locate(range.end)));
        }
        texts.end_event(generated.finished(), rules, findings)
    }

    /// Inspects a document of no known shape as one text of its own: the strings of JSON, or all of it.
    fn other(
        &mut self,
        document: &[u8],
        locate: impl Fn(usize) -> usize,
        line_break: &[u8],
        reading: &mut Reading,
        rules: &mut Rules<'_>,
    ) -> Result<(), Denial> {
        let text = std::str::from_utf8(document).map_err(|_| Denial::Malformed)?;
        let Reading { other, workspace, .. } = reading;
        if other.collect(document, workspace).is_err() {
            other.plain(text);
        }
        if other.overflowed() {
            return Err(Denial::TooLarge);
        }
        if self.texts.are_scanned_at_end() {
            self.whole = Some(Whole {
                text: std::mem::take(other),
                ..Whole::default()
            });
            return Ok(());
        }
        let mut spans = Spans::default();
        self.findings
            .whole(rules, (other.text(), Scope::Answer), Some(&*other), &mut spans)?;
        self.replace(document, other, spans, locate, line_break, rules.engine);
        Ok(())
    }

    /// Replaces the document, of which `text` is the text, by itself with these parts of the text replaced.
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
            masks.put_back(&mut rewritten);
        }
        if rewritten == document {
            return;
        }
        let lines: Vec<&[u8]> = rewritten.split(|byte| *byte == b'\n').collect();
        self.held.add(Part::Replaced {
            raw: locate(0)..locate(document.len()),
            by: lines.join(line_break),
        });
    }

    fn release(&mut self, engine: &Engine, out: &mut Vec<u8>) -> Result<(), Denial> {
        self.findings.check()?;
        if self.guard.as_ref().is_some_and(CallGuard::holds) {
            return Ok(());
        }
        self.held.release(&mut self.texts, engine, out);
        Ok(())
    }
}
