use serde_json::value::RawValue;

use crate::MessagePath;
use crate::body::Message;
use crate::dropped_fields::{DroppedFields, raw_json};
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::droppable_fields::OTHER_FIELDS;
use proofgate_dialect::json_text::JsonText;

/// The role of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// System and developer messages.
    System,
    User,
    Assistant,
    Tool,
}

impl<'b> Message<'b> {
    /// Reads the role, and drops the fields of the message that the writer does not handle itself.
    pub fn read_role(
        &self,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<Role, UntranslatableRequest> {
        let role = match self.role.as_deref() {
            Some("system" | "developer") => Role::System,
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            Some("tool") => Role::Tool,
            _ => {
                let message = "the role must be system, developer, user, assistant or tool";
                return Err(UntranslatableRequest::new(place.field_path("role"), message));
            }
        };
        // The name of a tool is known from the call that its result answers.
        let name = self.name.filter(|_| role != Role::Tool);
        let own = |value: Option<&'b RawValue>| value.filter(|_| role == Role::Assistant);
        for (key, value) in [
            ("messages[].audio", self.audio),
            ("messages[].function_call", self.function_call),
            ("messages[].name", name),
            ("messages[].annotations", self.annotations),
            ("messages[].cache_control", self.cache_control),
            ("messages[].extra_content", own(self.extra_content)),
            ("messages[].images", own(self.images)),
        ] {
            let field = key.strip_prefix("messages[].").unwrap_or(key);
            losses.drop_unless_handled(key, raw_json(value), || place.field_path(field))?;
        }
        self.note_other_role_fields(role, losses);
        losses.drop_unknown(self.unknown.as_ref());
        Ok(role)
    }

    /// Records fields that belong only to messages of another role.
    fn note_other_role_fields(&self, role: Role, losses: &mut DroppedFields) {
        // The location for the order of dropped fields: all fields of a message count as one location.
        let here = self.role.as_deref().unwrap_or_default();
        if role != Role::Tool && self.tool_call_id.is_some() {
            losses.record_field(OTHER_FIELDS, here);
        }
        let of_the_model = [
            self.refusal.is_some(),
            self.tool_calls.is_some(),
            self.reasoning.is_some(),
            self.reasoning_content.is_some(),
            self.reasoning_details.is_some(),
            self.extra_content.is_some(),
            self.images.is_some(),
        ];
        if role != Role::Assistant && of_the_model.contains(&true) {
            losses.record_field(OTHER_FIELDS, here);
        }
    }

    /// Drops reasoning text, which is unsigned.
    pub fn drop_reasoning_text(
        &self,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        for (key, field, value) in [
            ("messages[].reasoning", "reasoning", self.reasoning),
            (
                "messages[].reasoning_content",
                "reasoning_content",
                self.reasoning_content,
            ),
        ] {
            losses.drop_unless_handled(key, raw_json(value), || place.field_path(field))?;
        }
        Ok(())
    }

    /// Drops reasoning that the provider cannot use.
    pub fn drop_reasoning_details(
        &self,
        place: MessagePath,
        losses: &mut DroppedFields,
    ) -> Result<(), UntranslatableRequest> {
        match self.reasoning_details {
            Some(details) => losses.drop_listed("messages[].reasoning_details", details.get(), || {
                place.field_path("reasoning_details")
            }),
            None => Ok(()),
        }
    }

    /// Returns the text of the model's refusal, unless it is blank.
    pub fn refusal_text(&self) -> Option<JsonText<'b>> {
        self.refusal.filter(|refusal| !refusal.is_blank())
    }

    /// Returns the id of the call that a tool message answers.
    pub fn answered_call_id(&self, place: MessagePath) -> Result<&str, UntranslatableRequest> {
        let missing =
            || UntranslatableRequest::new(place.field_path("tool_call_id"), "the id of a call is missing");
        self.tool_call_id.as_deref().ok_or_else(missing)
    }
}
