//! An item of a request's `input`.

use proofgate_dialect::field::Field;

/// The members of an item, by name, without those that only its provider needs.
#[derive(Default)]
pub(super) struct Item<'b, 'p> {
    pub(super) kind: Option<Field<'b, 'p>>,
    pub(super) role: Option<Field<'b, 'p>>,
    pub(super) content: Option<Field<'b, 'p>>,
    pub(super) summary: Option<Field<'b, 'p>>,
    pub(super) encrypted_content: Option<Field<'b, 'p>>,
    pub(super) tools: Option<Field<'b, 'p>>,
    pub(super) execution: Option<Field<'b, 'p>>,
    pub(super) id: Option<Field<'b, 'p>>,
    pub(super) call_id: Option<Field<'b, 'p>>,
    pub(super) name: Option<Field<'b, 'p>>,
    pub(super) namespace: Option<Field<'b, 'p>>,
    pub(super) arguments: Option<Field<'b, 'p>>,
    pub(super) input: Option<Field<'b, 'p>>,
    pub(super) action: Option<Field<'b, 'p>>,
    pub(super) operation: Option<Field<'b, 'p>>,
    pub(super) output: Option<Field<'b, 'p>>,
    pub(super) result: Option<Field<'b, 'p>>,
    pub(super) output_format: Option<Field<'b, 'p>>,
    pub(super) status: Option<Field<'b, 'p>>,
}
