use crate::Untranslatable;
use crate::field::{Field, Losses};

/// The tools of a request and which of them the model may call.
#[derive(Debug, Default)]
pub(super) struct Tools {
    declarations: Vec<u8>,
    /// The `functionCallingConfig`.
    choice: Vec<u8>,
}

impl Tools {
    /// Takes the body's `tools`.
    pub fn read(&mut self, field: &Field<'_, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        for (index, tool) in field.elements()?.into_iter().enumerate() {
            let tool = field.element(index, tool);
            let members = tool.members()?;
            let mut function = None;
            for (name, value) in &members {
                let member = tool.member(name, value);
                match &**name {
                    "type" if member.json() == r#""function""# => {}
                    "type" => return Err(member.refuse("The provider has no tools but functions.")),
                    "function" => function = Some(member),
                    // Its type is refused.
                    "custom" => {}
                    "cache_control" => losses.lose("cache_control", &member)?,
                    _ => losses.unknown(&member)?,
                }
            }
            let function = function.ok_or_else(|| tool.refuse("It must have a function."))?;
            self.declare(&function, losses)?;
        }
        Ok(())
    }

    fn declare(&mut self, function: &Field<'_, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        let (mut function_name, mut description, mut parameters) = (None, None, None);
        for (name, value) in function.members()? {
            let member = function.member(&name, value);
            match &*name {
                "name" => function_name = Some(member.literal()?),
                "description" => description = Some(member.literal()?),
                "parameters" if member.is_object() => parameters = Some(member.json()),
                "parameters" => return Err(member.refuse("It must be an object.")),
                "strict" => {
                    member.boolean()?;
                    losses.lose("tools[].function.strict", &member)?;
                }
                "cache_control" => losses.lose("cache_control", &member)?,
                _ => losses.unknown(&member)?,
            }
        }
        let name = function_name.ok_or_else(|| function.refuse("It must have a name."))?;
        let out = &mut self.declarations;
        if !out.is_empty() {
            out.push(b',');
        }
        out.extend_from_slice(br#"{"name":"#);
        out.extend_from_slice(name.as_bytes());
        if let Some(description) = description {
            out.extend_from_slice(br#","description":"#);
            out.extend_from_slice(description.as_bytes());
        }
        // `parameters` would take a part of OpenAPI's schemas only: no `$ref`, no `additionalProperties`, no list of types.
        if let Some(parameters) = parameters {
            out.extend_from_slice(br#","parametersJsonSchema":"#);
            out.extend_from_slice(parameters.as_bytes());
        }
        out.push(b'}');
        Ok(())
    }

    /// Takes the body's `tool_choice`.
    pub fn read_choice(&mut self, field: &Field<'_, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        if field.is_string() {
            match &*field.text()? {
                "auto" => self.choose("AUTO", &[]),
                "none" => self.choose("NONE", &[]),
                "required" => self.choose("ANY", &[]),
                _ => return Err(field.refuse("It must be auto, none, required or an object.")),
            }
            return Ok(());
        }
        let members = field.members()?;
        let (mut kind, mut function, mut allowed) = (None, None, None);
        for (name, value) in &members {
            let member = field.member(name, value);
            match &**name {
                "type" => kind = Some(member.text()?),
                "function" => function = Some(member),
                "allowed_tools" => allowed = Some(member),
                _ => losses.unknown(&member)?,
            }
        }
        match (kind.as_deref(), function, allowed) {
            (Some("function"), Some(function), None) => {
                let name = function_name(&function, losses)?;
                self.choose("ANY", &[name]);
                Ok(())
            }
            (Some("allowed_tools"), None, Some(allowed)) => self.allow(&allowed, losses),
            _ => Err(field.refuse("It must name a function, or the tools that are allowed.")),
        }
    }

    fn allow(&mut self, field: &Field<'_, '_>, losses: &mut Losses) -> Result<(), Untranslatable> {
        let (mut mode, mut names) = ("VALIDATED", Vec::new());
        for (name, value) in field.members()? {
            let member = field.member(&name, value);
            match &*name {
                "mode" => {
                    mode = match &*member.text()? {
                        // Its AUTO takes no names; this one is free to answer with text likewise.
                        "auto" => "VALIDATED",
                        "required" => "ANY",
                        _ => return Err(member.refuse("It must be auto or required.")),
                    }
                }
                "tools" => {
                    for (index, tool) in member.elements()?.into_iter().enumerate() {
                        names.push(tool_name(&member.element(index, tool), losses)?);
                    }
                }
                _ => losses.unknown(&member)?,
            }
        }
        if names.is_empty() {
            return Err(field.refuse("It must name a tool."));
        }
        self.choose(mode, &names);
        Ok(())
    }

    /// `names` are JSON.
    fn choose(&mut self, mode: &str, names: &[&str]) {
        let out = &mut self.choice;
        out.extend_from_slice(br#"{"mode":""#);
        out.extend_from_slice(mode.as_bytes());
        out.push(b'"');
        if !names.is_empty() {
            out.extend_from_slice(br#","allowedFunctionNames":["#);
            out.extend_from_slice(names.join(",").as_bytes());
            out.push(b']');
        }
        out.push(b'}');
    }

    /// Appends the members of the body, if there are any.
    pub fn write(&self, out: &mut Vec<u8>) {
        if !self.declarations.is_empty() {
            out.extend_from_slice(br#","tools":[{"functionDeclarations":["#);
            out.extend_from_slice(&self.declarations);
            out.extend_from_slice(b"]}]");
        }
        if !self.choice.is_empty() {
            out.extend_from_slice(br#","toolConfig":{"functionCallingConfig":"#);
            out.extend_from_slice(&self.choice);
            out.push(b'}');
        }
    }
}

/// The name of a tool that is referred to, as JSON.
fn tool_name<'b>(tool: &Field<'b, '_>, losses: &mut Losses) -> Result<&'b str, Untranslatable> {
    let mut found = None;
    for (name, value) in tool.members()? {
        let member = tool.member(&name, value);
        match &*name {
            "type" if member.json() == r#""function""# => {}
            "type" => return Err(member.refuse("The provider has no tools but functions.")),
            "function" => found = Some(function_name(&member, losses)?),
            _ => losses.unknown(&member)?,
        }
    }
    found.ok_or_else(|| tool.refuse("It must have a function."))
}

fn function_name<'b>(function: &Field<'b, '_>, losses: &mut Losses) -> Result<&'b str, Untranslatable> {
    let mut found = None;
    for (name, value) in function.members()? {
        let member = function.member(&name, value);
        match &*name {
            "name" => found = Some(member.literal()?),
            _ => losses.unknown(&member)?,
        }
    }
    found.ok_or_else(|| function.refuse("It must have a name."))
}
