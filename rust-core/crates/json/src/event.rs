use crate::text::Str;

/// One step through a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'d> {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// The key of an object's next value.
    Key(Str<'d>),
    /// A string value.
    String(Str<'d>),
    /// A number as it is written; it follows the grammar and may be beyond any machine type.
    Number(&'d str),
    /// `true` or `false`
    Bool(bool),
    /// `null`
    Null,
}
