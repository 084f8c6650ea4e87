use crate::text::Str;

/// An event of a document.
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
    /// The key of the next value in an object.
    Key(Str<'d>),
    /// A string value.
    String(Str<'d>),
    /// A number as written; it follows the grammar but may exceed every machine type.
    Number(&'d str),
    /// `true` or `false`
    Bool(bool),
    /// `null`
    Null,
}
