//! The items of a request's `input`.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::responses_openai::content::{self, Part, required_member};
use crate::responses_openai::conversation::Conversation;
use crate::responses_openai::item::Item;
use crate::responses_openai::tool_calls::{read_call, read_result};
use crate::responses_openai::tools::{Tools, unquoted};
use proofgate_dialect::ToolKind;
use proofgate_dialect::UntranslatableRequest;
use proofgate_dialect::field::{DroppedFields, Field};

const STORED_REFERENCE_ERROR: &str =
    "The provider of this model does not store items: send the item itself, as clients do with store: false.";
const COMPACTION_ERROR: &str = "Only OpenAI can read a conversation that OpenAI compacted: send the conversation itself, or a summary \
                          of it as a message.";
const COMPUTER_TOOL_ERROR: &str = "The provider of this model has no computer use tool.";

/// Reads the tools among the items: tools that a search found, and tools that were added later.
pub(super) fn read_tools<'b>(
    input: &Field<'b, '_>,
    tools: &mut Tools<'b>,
    losses: &mut DroppedFields,
) -> Result<(), UntranslatableRequest> {
    let may_hold =
        |json: &str| json.contains("\"tool_search_output\"") || json.contains("\"additional_tools\"");
    if input.is_string() || !may_hold(input.json()) {
        return Ok(());
    }
    for (index, item) in input.elements()?.into_iter().enumerate() {
        // Most items have no tools, and need not be read twice.
        if !may_hold(item.get()) {
            continue;
        }
        let item = input.element(index, item);
        let members = item.members()?;
        let of_tools = |(name, kind): &(Cow<'_, str>, &serde_json::value::RawValue)| {
            name == "type" && matches!(kind.get(), "\"tool_search_output\"" | "\"additional_tools\"")
        };
        if members.iter().any(of_tools)
            && let Some((name, found)) = members.iter().find(|(name, _)| name == "tools")
        {
            tools.read(&item.member(name, found), losses)?;
        }
    }
    Ok(())
}

/// Reads the body's `input`: a string, or items.
pub(super) fn read<'b>(
    input: &Field<'b, '_>,
    tools: &Tools<'b>,
    conversation: &mut Conversation<'b>,
    losses: &mut DroppedFields,
) -> Result<(), UntranslatableRequest> {
    if input.is_string() {
        conversation.push_user(&[Part::Text(unquoted(input.json()))]);
        return Ok(());
    }
    let items = input.elements();
    let items = items.map_err(|_| input.error("It must be a string or an array of items."))?;
    let mut reader = InputReader {
        tools,
        conversation,
        losses,
        shell_call_ids: HashMap::new(),
    };
    for (index, item) in items.into_iter().enumerate() {
        reader.read_item(&input.element(index, item))?;
    }
    Ok(())
}

struct InputReader<'r, 'b> {
    tools: &'r Tools<'b>,
    conversation: &'r mut Conversation<'b>,
    losses: &'r mut DroppedFields,
    /// The ids of items that are local-shell calls, with the ids of the calls: results may use either.
    shell_call_ids: HashMap<Cow<'b, str>, Cow<'b, str>>,
}

impl<'b> InputReader<'_, 'b> {
    fn read_item(&mut self, field: &Field<'b, '_>) -> Result<(), UntranslatableRequest> {
        let members = field.members()?;
        let mut item = Item::default();
        for (name, value) in &members {
            let place = match &**name {
                "type" => &mut item.kind,
                "role" => &mut item.role,
                "content" => &mut item.content,
                "summary" => &mut item.summary,
                "encrypted_content" => &mut item.encrypted_content,
                "tools" => &mut item.tools,
                "execution" => &mut item.execution,
                "id" => &mut item.id,
                "call_id" => &mut item.call_id,
                "name" => &mut item.name,
                "namespace" => &mut item.namespace,
                "arguments" => &mut item.arguments,
                "input" => &mut item.input,
                "action" => &mut item.action,
                "operation" => &mut item.operation,
                "output" => &mut item.output,
                "status" => &mut item.status,
                "result" => &mut item.result,
                "output_format" => &mut item.output_format,
                // The caller, the phase, and notes of the provider.
                _ => continue,
            };
            *place = Some(field.member(name, value));
        }
        let kind = item.kind.as_ref().map(Field::text).transpose()?;
        match kind.as_deref() {
            Some("message") => self.read_message(field, &item),
            None if item.role.is_some() => self.read_message(field, &item),
            None if item.id.is_some() => Err(field.error(STORED_REFERENCE_ERROR)),
            Some("item_reference") => Err(field.error(STORED_REFERENCE_ERROR)),
            Some("reasoning") => self.read_reasoning(&item),
            Some("function_call") => self.read_call(ToolKind::Function, field, &item),
            Some("custom_tool_call") => self.read_call(ToolKind::Custom, field, &item),
            Some("local_shell_call") => self.read_call(ToolKind::LocalShell, field, &item),
            Some("shell_call") => self.read_call(ToolKind::Shell, field, &item),
            Some("apply_patch_call") => self.read_call(ToolKind::ApplyPatch, field, &item),
            Some("tool_search_call" | "tool_search_output") if !self.is_client_tool(&item)? => Ok(()),
            Some("tool_search_call") => self.read_call(ToolKind::ToolSearch, field, &item),
            Some("tool_search_output") => self.read_found_tools(field, &item),
            Some("function_call_output") => self.read_result(ToolKind::Function, field, &item),
            Some("custom_tool_call_output") => self.read_result(ToolKind::Custom, field, &item),
            Some("local_shell_call_output") => self.read_result(ToolKind::LocalShell, field, &item),
            Some("shell_call_output") => self.read_result(ToolKind::Shell, field, &item),
            Some("apply_patch_call_output") => self.read_result(ToolKind::ApplyPatch, field, &item),
            Some("image_generation_call") if item.result.is_some() => self.read_image(&item),
            // They were read with the tools.
            Some("additional_tools") => Ok(()),
            Some("compaction" | "compaction_summary" | "compaction_trigger") => {
                Err(field.error(COMPACTION_ERROR))
            }
            Some("computer_call" | "computer_call_output") => Err(field.error(COMPUTER_TOOL_ERROR)),
            // Results of OpenAI's own tools, which the model has used in its text; items that are not part of the
            // conversation; and unknown items.
            _ => self.losses.drop_listed("input[].type", field),
        }
    }

    fn read_message(
        &mut self,
        field: &Field<'b, '_>,
        item: &Item<'b, '_>,
    ) -> Result<(), UntranslatableRequest> {
        let role = required_member(field, item.role.as_ref(), "It must have a role.")?;
        let content = required_member(field, item.content.as_ref(), "It must have content.")?;
        let said = role.text()?;
        let parts = content::read(content, self.losses)?;
        let takes_media = said == "user";
        if !takes_media && parts.iter().any(|part| part.text().is_none()) {
            self.losses.drop_listed("input[].content[].type", content)?;
        }
        match &*said {
            "user" => self.conversation.push_user(&parts),
            "assistant" => self.conversation.push_assistant(&parts),
            "system" | "developer" => self.conversation.push_system(&parts),
            _ => return Err(role.error("It must be user, assistant, system or developer.")),
        }
        Ok(())
    }

    fn read_reasoning(&mut self, item: &Item<'b, '_>) -> Result<(), UntranslatableRequest> {
        let mut texts = Vec::new();
        // The reasoning itself, if it has no summary.
        for said in [&item.summary, &item.content].into_iter().flatten() {
            if texts.is_empty() {
                texts = content::read(said, self.losses)?;
            }
        }
        let texts: Vec<&str> = texts.iter().filter_map(Part::text).collect();
        let encrypted = item.encrypted_content.as_ref();
        let kept = encrypted.map(Field::text).transpose()?;
        let is_read = self.conversation.reasoning().push_item(&texts, kept.as_deref());
        match encrypted {
            Some(encrypted) if !is_read => self.losses.drop_listed("input[].encrypted_content", encrypted),
            _ => Ok(()),
        }
    }

    /// Reads a generated image: only a user message can contain it.
    fn read_image(&mut self, item: &Item<'b, '_>) -> Result<(), UntranslatableRequest> {
        let Some(result) = &item.result else { return Ok(()) };
        let format = item
            .output_format
            .as_ref()
            .map_or(Ok("\"png\""), Field::literal)?;
        let url = [
            "data:image/",
            unquoted(format),
            ";base64,",
            unquoted(result.literal()?),
        ]
        .concat();
        let picture = [r#"{"type":"image_url","image_url":{"url":""#, &url, r#""}}"#].concat();
        self.conversation.push_user(&[Part::Media(picture.into_bytes())]);
        Ok(())
    }

    fn read_call(
        &mut self,
        kind: ToolKind,
        field: &Field<'b, '_>,
        item: &Item<'b, '_>,
    ) -> Result<(), UntranslatableRequest> {
        let call = read_call(kind, field, item, &self.tools.names)?;
        if let (ToolKind::LocalShell, Some(id)) = (kind, &item.id) {
            self.shell_call_ids.insert(id.text()?, call.id.clone());
        }
        self.conversation.push_call(call);
        Ok(())
    }

    fn read_result(
        &mut self,
        kind: ToolKind,
        field: &Field<'b, '_>,
        item: &Item<'b, '_>,
    ) -> Result<(), UntranslatableRequest> {
        let (id, parts) = read_result(kind, field, item, self.losses)?;
        let shell = self
            .shell_call_ids
            .get(&id)
            .filter(|_| kind == ToolKind::LocalShell);
        let id = shell.unwrap_or(&id);
        self.conversation.push_result(id, parts);
        Ok(())
    }

    fn is_client_tool(&self, item: &Item<'b, '_>) -> Result<bool, UntranslatableRequest> {
        let execution = item.execution.as_ref().map(Field::text).transpose()?;
        Ok(item.call_id.is_some() && execution.as_deref() != Some("server"))
    }

    /// Reads the tools that a search found, which are sent with the others.
    fn read_found_tools(
        &mut self,
        field: &Field<'b, '_>,
        item: &Item<'b, '_>,
    ) -> Result<(), UntranslatableRequest> {
        let id = required_member(field, item.call_id.as_ref(), "It must have a call_id.")?.text()?;
        let mut names = Vec::new();
        if let Some(tools) = &item.tools {
            for (index, tool) in tools.elements()?.into_iter().enumerate() {
                self.add_provider_names(&tools.element(index, tool), None, &mut names)?;
            }
        }
        let text = match names.is_empty() {
            true => "No tools were found.".to_owned(),
            false => format!("These tools can be called now: {}.", names.join(", ")),
        };
        let mut quoted = Vec::new();
        proofgate_dialect::json::write_string(&mut quoted, &text);
        let quoted = String::from_utf8(quoted).unwrap_or_default();
        self.conversation
            .push_result(&id, vec![Part::OwnedText(unquoted(&quoted).to_owned())]);
        Ok(())
    }

    /// Adds the provider names of a tool, or of the tools in a namespace.
    fn add_provider_names(
        &self,
        tool: &Field<'b, '_>,
        namespace: Option<&str>,
        names: &mut Vec<String>,
    ) -> Result<(), UntranslatableRequest> {
        let (mut kind, mut name, mut tools) = (Cow::Borrowed(""), None, None);
        let members = tool.members()?;
        for (member_name, value) in &members {
            let member = tool.member(member_name, value);
            match &**member_name {
                "type" => kind = member.text()?,
                "name" => name = Some(member.text()?),
                "tools" => tools = Some(member),
                _ => {}
            }
        }
        let Some(name) = name else { return Ok(()) };
        match (&*kind, tools) {
            ("function", _) => names.push(self.tools.names.provider_name(
                ToolKind::Function,
                namespace,
                &name,
            )),
            ("custom", _) => names.push(self.tools.names.provider_name(ToolKind::Custom, namespace, &name)),
            ("namespace", Some(tools)) if namespace.is_none() => {
                for (index, tool) in tools.elements()?.into_iter().enumerate() {
                    self.add_provider_names(&tools.element(index, tool), Some(&name), names)?;
                }
            }
            _ => {}
        }
        Ok(())
    }
}
