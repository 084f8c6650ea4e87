use std::ops::Range;

use proofgate_json::Workspace;
use proofgate_policy::{Direction, Engine, Judgement, Profile, Scratch};
use proofgate_providers::{BodyText, EventReader, GeneratedText, Place, Shape, StreamEvent};

use crate::held::{Held, Part};
use crate::spans::Spans;
use crate::stop::Stop;
use crate::texts::{Findings, Rules, Texts};

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

/// Inspects one answer as it passes.
///
/// A whole body is held until its end. Of a stream, every event is held until no rule can touch its text any more, or until
/// the text seems to be over because its choice has finished or has gone on to another text; events keep their order. What the rules do not redact leaves byte for byte as it came. A redacted event also loses its
/// `logprobs`, which repeat the text.
#[derive(Debug)]
pub struct ResponseInspector {
    kind: AnswerKind,
    limit: usize,
    /// The body so far, of an answer that is no stream.
    body: Vec<u8>,
    events: EventReader,
    inspection: Inspection,
    stopped: Option<Stop>,
}

impl ResponseInspector {
    /// An inspector of an answer that holds at most `limit` bytes of it.
    pub fn new(kind: AnswerKind, limit: usize) -> Self {
        let mut inspector = ResponseInspector {
            kind,
            limit,
            body: Vec::new(),
            events: EventReader::new(limit),
            inspection: Inspection::default(),
            stopped: None,
        };
        inspector.reset(kind);
        inspector
    }

    /// Forgets everything, for the next answer; keeps the buffers.
    pub fn reset(&mut self, kind: AnswerKind) {
        self.kind = kind;
        self.body.clear();
        self.events.clear();
        self.inspection.reset(kind);
        self.stopped = None;
    }

    /// Takes the next bytes of the answer and appends to `out` what may go to the client.
    ///
    /// # Errors
    /// [`Stop`]: the answer may not go on. What was appended to `out` may still leave. So does every later call.
    pub fn push(
        &mut self,
        engine: &Engine,
        profile: &Profile,
        scratch: &mut Scratch,
        reading: &mut Reading,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Stop> {
        self.guard(|inspector| match inspector.kind {
            AnswerKind::Unary => {
                if bytes.len() > inspector.limit - inspector.body.len() {
                    return Err(Stop::TooLarge);
                }
                inspector.body.extend_from_slice(bytes);
                Ok(())
            }
            AnswerKind::Events => {
                let mut rules = Rules {
                    engine,
                    profile,
                    deadline: engine.deadline(),
                    scratch,
                };
                inspector.events.push(bytes);
                while let Some(event) = inspector.events.next_event().map_err(|_| Stop::TooLarge)? {
                    inspector.inspection.event(&event, reading, &mut rules)?;
                    inspector.inspection.release(engine, out)?;
                    if inspector.inspection.held.len() > inspector.limit {
                        return Err(Stop::TooLarge);
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
    ) -> Result<(), Stop> {
        self.guard(|inspector| {
            let mut rules = Rules {
                engine,
                profile,
                deadline: engine.deadline(),
                scratch,
            };
            let inspection = &mut inspector.inspection;
            match inspector.kind {
                AnswerKind::Unary => {
                    inspection.held.push(&inspector.body);
                    inspection.document(&inspector.body, |offset| offset, b"\n", reading, &mut rules)?;
                    inspector.body.clear();
                }
                AnswerKind::Events => {
                    if let Some(event) = inspector.events.finish().map_err(|_| Stop::TooLarge)? {
                        inspection.event(&event, reading, &mut rules)?;
                    }
                }
            }
            inspection.texts.finish(&mut rules, &mut inspection.findings)?;
            inspection.release(engine, out)
        })
    }

    /// The rules that matched so far, their score, and whether an enforced policy would block.
    pub fn judgement(&self) -> &Judgement {
        &self.inspection.findings.judgement
    }

    /// Whether anything was replaced, or will be.
    pub fn is_redacted(&self) -> bool {
        self.inspection.findings.redacted()
    }

    fn guard(&mut self, work: impl FnOnce(&mut Self) -> Result<(), Stop>) -> Result<(), Stop> {
        if let Some(stop) = self.stopped {
            return Err(stop);
        }
        let done = work(self);
        self.stopped = done.err();
        done
    }
}

/// What is known of an answer.
#[derive(Debug, Default)]
struct Inspection {
    texts: Texts,
    held: Held,
    findings: Findings,
}

impl Inspection {
    fn reset(&mut self, kind: AnswerKind) {
        self.texts.reset(kind == AnswerKind::Unary);
        self.held.clear();
        self.findings = Findings::default();
    }

    fn event(
        &mut self,
        event: &StreamEvent<'_>,
        reading: &mut Reading,
        rules: &mut Rules<'_>,
    ) -> Result<(), Stop> {
        self.held.push(event.raw);
        match event.data {
            Some(b"[DONE]") => Ok(()),
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
    ) -> Result<(), Stop> {
        if !document.trim_ascii_start().starts_with(b"{") {
            return self.other(document, locate, line_break, reading, rules);
        }
        match reading.generated.read(document, &mut reading.workspace) {
            Ok(Shape::Choices) => self.generated(locate, reading, rules),
            Ok(Shape::Other) => self.other(document, locate, line_break, reading, rules),
            Err(_) => Err(Stop::Malformed),
        }
    }

    fn generated(
        &mut self,
        locate: impl Fn(usize) -> usize,
        reading: &mut Reading,
        rules: &mut Rules<'_>,
    ) -> Result<(), Stop> {
        let Inspection {
            texts,
            held,
            findings,
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
            key.clear();
            generated.write_key(part, key);
            let text = texts.number(key, generated.choice_index(part))?;
            let before = texts.get(text).length;
            texts.push(text, piece, rules, findings)?;
            // A line break is no character of a string, so a string stands in one line of the event.
            let start = locate(part.place.raw.start);
            held.add(Part::Text {
                text,
                range: before..before + piece.len(),
                place: Place {
                    raw: start..start + part.place.raw.len(),
                    escaped: part.place.escaped,
                },
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
    ) -> Result<(), Stop> {
        let text = std::str::from_utf8(document).map_err(|_| Stop::Malformed)?;
        let Reading { other, workspace, .. } = reading;
        if other.collect(document, workspace).is_err() {
            other.plain(text);
        }
        let mut spans = Spans::default();
        self.findings.whole(rules, other.text(), &mut spans)?;
        if spans.is_empty() {
            return Ok(());
        }
        let redactions = spans.into_redactions();
        let names: Vec<String> = redactions
            .iter()
            .map(|redaction| redaction.replacement(rules.engine))
            .collect();
        let edits: Vec<(Range<usize>, &str)> = redactions
            .iter()
            .zip(&names)
            .map(|(redaction, name)| (redaction.range.clone(), name.as_str()))
            .collect();
        let mut rewritten = Vec::new();
        other.rewrite(document, &edits, &mut rewritten);
        let lines: Vec<&[u8]> = rewritten.split(|byte| *byte == b'\n').collect();
        self.held.add(Part::Replaced {
            raw: locate(0)..locate(document.len()),
            by: lines.join(line_break),
        });
        Ok(())
    }

    fn release(&mut self, engine: &Engine, out: &mut Vec<u8>) -> Result<(), Stop> {
        self.findings.check()?;
        self.held.release(&mut self.texts, engine, out);
        Ok(())
    }
}
