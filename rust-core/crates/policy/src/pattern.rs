//! A rule's regex: the part of the syntax that all engines interpret alike, with ASCII classes and a bounded length.

use std::ops::Range;

use regex_automata::meta::{Cache, Regex};
use regex_automata::{Anchored, Input};
use regex_syntax::ast::{self, Ast};
use regex_syntax::hir::{Hir, HirKind};

use crate::View;
use crate::anchor::Anchor;
use crate::fold_table::{FoldResult, FoldTable};
use crate::start_bytes::StartBytes;

/// Maximum bytes of a match.
pub(crate) const MAX_MATCH_BYTES: usize = 1024;
const NFA_BYTES: usize = 8 << 20;
const LAZY_DFA_BYTES: usize = 1 << 20;
/// The capture group that holds the value a rule is about.
pub(crate) const VALUE_GROUP: &str = "value";

/// A compiled regex that matches at least one and at most `max_len` bytes.
#[derive(Debug)]
pub(crate) struct Pattern {
    pub(crate) hir: Hir,
    pub(crate) regex: Regex,
    pub(crate) max_len: usize,
    pub(crate) start_bytes: StartBytes,
    /// The anchor, which is faster than the regex in excluding positions where no match begins.
    pub(crate) anchor: Anchor,
    /// Whether it has the group [`VALUE_GROUP`], which is then its only group.
    has_value: bool,
}

impl Pattern {
    /// Returns the part of `candidate`, a match found by a search up to `end` of `text`, that the rule is about: its value,
    /// or the whole match if there is none.
    pub(crate) fn value(
        &self,
        cache: &mut Cache,
        text: &[u8],
        candidate: Range<usize>,
        end: usize,
    ) -> Range<usize> {
        if !self.has_value {
            return candidate;
        }
        let input = Input::new(text)
            .range(candidate.start..end)
            .anchored(Anchored::Yes);
        let mut slots = [None; 4];
        self.regex.search_slots_with(cache, &input, &mut slots);
        match slots {
            [_, _, Some(start), Some(end)] => start.get()..end.get(),
            _ => candidate,
        }
    }

    /// Compiles a regex as a user wrote it.
    pub(crate) fn parse(source: &str, view: View, table: &FoldTable) -> Result<Self, String> {
        let ast = ast::parse::Parser::new()
            .parse(source)
            .map_err(|error| error.kind().to_string())?;
        let reader = PatternRewriter {
            source,
            view,
            table,
            changes: Vec::new(),
        };
        let changes = ast::visit(&ast, reader)?;
        Self::compile(&apply_changes(source, changes))
    }

    /// Returns a pattern that matches nothing.
    pub(crate) fn never() -> Result<Self, String> {
        Self::build(Hir::fail(), 0, false)
    }

    /// Compiles the alternation of `literals`.
    pub(crate) fn from_literals(literals: &[String]) -> Result<Self, String> {
        let escaped: Vec<_> = literals
            .iter()
            .map(|literal| regex_syntax::escape(literal))
            .collect();
        Self::compile(&escaped.join("|"))
    }

    fn compile(pattern: &str) -> Result<Self, String> {
        let hir = regex_syntax::ParserBuilder::new()
            .utf8(false)
            .build()
            .parse(pattern)
            .map_err(|error| match error {
                regex_syntax::Error::Parse(error) => error.kind().to_string(),
                regex_syntax::Error::Translate(error) => error.kind().to_string(),
                other => other.to_string(),
            })?;
        if hir.properties().minimum_len().is_none_or(|least| least == 0) {
            return Err("can match the empty text; require at least one character".to_owned());
        }
        let longest = match hir.properties().maximum_len() {
            Some(longest) if longest <= MAX_MATCH_BYTES => longest,
            Some(longest) => {
                return Err(format!(
                    "can match {longest} bytes; limit its repetitions so that it matches at most {MAX_MATCH_BYTES} (each character counts as its longest encoding, `.` as 4)"
                ));
            }
            None => {
                return Err(format!(
                    "can match a text of any length; limit its repetitions ({{0,80}} instead of *) so that it matches at most {MAX_MATCH_BYTES} bytes"
                ));
            }
        };
        let has_value = check_value(&hir)?;
        Self::build(hir, longest, has_value)
    }

    fn build(hir: Hir, longest: usize, has_value: bool) -> Result<Self, String> {
        let config = Regex::config()
            .utf8_empty(false)
            // The possible positions of matches are already known, and a search for digits would stop at every number.
            .auto_prefilter(false)
            .nfa_size_limit(Some(NFA_BYTES))
            .hybrid_cache_capacity(LAZY_DFA_BYTES);
        let regex = Regex::builder()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|error| format!("cannot be compiled: {error}"))?;
        let anchor = Anchor::build(&hir)?;
        let begins = anchor.start_bytes()?;
        Ok(Self {
            hir,
            regex,
            max_len: longest,
            start_bytes: begins,
            anchor,
            has_value,
        })
    }
}

/// Checks whether a pattern has the group [`VALUE_GROUP`]. Engines agree on the group's content
/// only if the group participates at most once, and an empty value could not be replaced.
fn check_value(hir: &Hir) -> Result<bool, String> {
    let repeated = || Err("the group value must not be repeated; put the repetition inside it".to_owned());
    match hir.kind() {
        HirKind::Capture(group) => match group.sub.properties().minimum_len() {
            Some(least) if least > 0 => Ok(true),
            _ => Err("the group value can be empty; require at least one character in it".to_owned()),
        },
        HirKind::Repetition(repetition) => {
            let has_value = check_value(&repetition.sub)?;
            if has_value && repetition.max != Some(1) {
                repeated()
            } else {
                Ok(has_value)
            }
        }
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            let mut any = false;
            for part in parts {
                any |= check_value(part)?;
            }
            Ok(any)
        }
        _ => Ok(false),
    }
}

/// A span of a pattern and its replacement.
struct Change {
    span: ast::Span,
    replacement: String,
}

fn apply_changes(source: &str, changes: Vec<Change>) -> String {
    let mut pattern = String::with_capacity(source.len() * 2);
    let mut done = 0;
    for change in changes {
        pattern.push_str(&source[done..change.span.start.offset]);
        pattern.push_str(&change.replacement);
        done = change.span.end.offset;
    }
    pattern.push_str(&source[done..]);
    pattern
}

/// Visits a pattern from left to right, rejects syntax that engines interpret differently, and collects the changes that
/// fold its characters and make its classes ASCII.
struct PatternRewriter<'a> {
    source: &'a str,
    view: View,
    table: &'a FoldTable,
    changes: Vec<Change>,
}

impl PatternRewriter<'_> {
    fn add_change(&mut self, span: &ast::Span, replacement: impl Into<String>) {
        self.changes.push(Change {
            span: *span,
            replacement: replacement.into(),
        });
    }

    fn source_of<'a>(&'a self, span: &ast::Span) -> &'a str {
        &self.source[span.start.offset..span.end.offset]
    }

    fn visit_literal(&mut self, literal: &ast::Literal, in_class: bool) -> Result<(), String> {
        if matches!(literal.kind, ast::LiteralKind::HexBrace(_)) {
            return Err(format!(
                "{} differs between regex engines; write \\xHH, \\uHHHH or the character itself",
                self.source_of(&literal.span)
            ));
        }
        if self.view == View::Text {
            return Ok(());
        }
        let character = literal.c;
        if character.is_ascii_uppercase() && !in_class {
            return Err(format!(
                "with view = \"folded\", the rule sees the text in lower case, so {character:?} never matches; write it in lower case, or set view = \"text\""
            ));
        }
        if character.is_ascii() {
            return Ok(());
        }
        match self.table.fold(character) {
            FoldResult::Character(folded) if folded == character => Ok(()),
            FoldResult::Character(folded) if literal.kind == ast::LiteralKind::Verbatim => {
                self.add_change(
                    &literal.span,
                    regex_syntax::escape(folded.encode_utf8(&mut [0; 4])),
                );
                Ok(())
            }
            FoldResult::Character(folded) => Err(format!(
                "with view = \"folded\", the rule sees {folded:?} instead of {}",
                self.source_of(&literal.span)
            )),
            FoldResult::Characters(folded) => Err(format!(
                "with view = \"folded\", the rule sees {folded:?} instead of {character:?}; write {folded:?}"
            )),
            FoldResult::Dropped => Err(format!(
                "with view = \"folded\", the rule sees the text without {character:?}, so this pattern never matches; set view = \"text\""
            )),
        }
    }

    /// Only the group [`VALUE_GROUP`] is kept, so that it is the first group.
    fn visit_group(&mut self, group: &ast::Group) -> Result<(), String> {
        match &group.kind {
            ast::GroupKind::NonCapturing(flags) if !flags.items.is_empty() => {
                Err("inline flags differ between regex engines; to ignore case, set view = \"folded\" and write the pattern in lower case".to_owned())
            }
            ast::GroupKind::CaptureName { name, .. } if name.name != VALUE_GROUP => Err(format!(
                "the group name {:?} is not known; name the part to redact (?<value>…), and write other groups as (?:…)",
                name.name
            )),
            ast::GroupKind::CaptureIndex(_) => {
                let mut opening = group.span;
                opening.end.offset = opening.start.offset + 1;
                self.add_change(&opening, "(?:");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn visit_perl_class(&mut self, class: &ast::ClassPerl, in_class: bool) {
        let members = match class.kind {
            ast::ClassPerlKind::Digit => "0-9",
            ast::ClassPerlKind::Space => r"\t\n\v\f\r ",
            ast::ClassPerlKind::Word => "0-9A-Za-z_",
        };
        let replacement = match (class.negated, in_class) {
            (false, true) => members.to_owned(),
            (false, false) => format!("[{members}]"),
            (true, _) => format!("[^{members}]"),
        };
        self.add_change(&class.span, replacement);
    }
}

impl ast::Visitor for PatternRewriter<'_> {
    type Output = Vec<Change>;
    type Err = String;

    fn finish(self) -> Result<Vec<Change>, String> {
        Ok(self.changes)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), String> {
        match ast {
            Ast::Flags(_) => {
                Err("inline flags differ between regex engines; to ignore case, set view = \"folded\" and write the pattern in lower case".to_owned())
            }
            Ast::Group(group) => self.visit_group(group),
            Ast::Assertion(assertion) => match assertion.kind {
                ast::AssertionKind::WordBoundary => {
                    self.add_change(&assertion.span, r"(?-u:\b)");
                    Ok(())
                }
                ast::AssertionKind::NotWordBoundary => {
                    self.add_change(&assertion.span, r"(?-u:\B)");
                    Ok(())
                }
                _ => Err(format!(
                    "the anchor {} is not supported: a text can arrive in pieces, so it has no fixed start or end",
                    self.source_of(&assertion.span)
                )),
            },
            Ast::ClassUnicode(class) => Err(format!(
                "{} differs between regex engines; write a character class such as [a-z] instead",
                self.source_of(&class.span)
            )),
            Ast::ClassPerl(class) => {
                self.visit_perl_class(class, false);
                Ok(())
            }
            Ast::Literal(literal) => self.visit_literal(literal, false),
            _ => Ok(()),
        }
    }

    fn visit_class_set_item_pre(&mut self, item: &ast::ClassSetItem) -> Result<(), String> {
        match item {
            ast::ClassSetItem::Literal(literal) => self.visit_literal(literal, true),
            ast::ClassSetItem::Range(range) => {
                for end in [&range.start, &range.end] {
                    let known = self.changes.len();
                    self.visit_literal(end, true)?;
                    if self.changes.len() > known {
                        return Err(format!(
                            "folding changes {:?}, which begins or ends a range; list the characters instead",
                            end.c
                        ));
                    }
                }
                Ok(())
            }
            ast::ClassSetItem::Perl(class) => {
                self.visit_perl_class(class, true);
                Ok(())
            }
            ast::ClassSetItem::Ascii(class) => Err(format!(
                "{} differs between regex engines; list the characters instead",
                self.source_of(&class.span)
            )),
            ast::ClassSetItem::Unicode(class) => Err(format!(
                "{} differs between regex engines; list the characters instead",
                self.source_of(&class.span)
            )),
            ast::ClassSetItem::Bracketed(_) => Err(
                "nested character classes differ between regex engines; write \\[ for the character ["
                    .to_owned(),
            ),
            ast::ClassSetItem::Empty(_) | ast::ClassSetItem::Union(_) => Ok(()),
        }
    }

    fn visit_class_set_binary_op_pre(&mut self, operation: &ast::ClassSetBinaryOp) -> Result<(), String> {
        Err(format!(
            "{} in a character class differs between regex engines; write each of its characters with a backslash",
            self.source_of(&operation.span)
        ))
    }
}

/// Whether the pattern contains the group [`VALUE_GROUP`].
pub(crate) fn has_value_group(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Capture(group) => group.name.as_deref() == Some(VALUE_GROUP) || has_value_group(&group.sub),
        HirKind::Repetition(repetition) => has_value_group(&repetition.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => parts.iter().any(has_value_group),
        _ => false,
    }
}
