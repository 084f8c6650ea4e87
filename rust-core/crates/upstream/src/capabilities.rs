//! The abilities of the listed models, in the form of each API. Unknown abilities are left out.

use proofgate_translate::capabilities::{Capabilities, capabilities, common_efforts};
use serde::Serialize;

use crate::routes::Model;

/// The known abilities of a model, combined over all of its providers.
pub struct ModelCapabilities {
    pub(crate) capabilities: Capabilities,
    efforts: Option<Vec<&'static str>>,
}

/// The abilities in OpenAI's list. The first three field names are Mistral's (docs.mistral.ai,
/// "List Models"), the last two are GitHub's.
#[derive(Serialize)]
pub struct CardCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    vision: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_calling: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_outputs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<Vec<&'static str>>,
}

/// The abilities in Anthropic's list (anthropic-py 2.12.0, `types/model_capabilities.py`).
#[derive(Serialize)]
pub(crate) struct InfoCapabilities {
    #[serde(skip_serializing_if = "Option::is_none")]
    image_input: Option<Support>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_outputs: Option<Support>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Support>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effort: Option<EffortSupport>,
}

#[derive(Serialize)]
struct Support {
    supported: bool,
}

/// Anthropic's effort levels.
#[derive(Serialize)]
struct EffortSupport {
    supported: bool,
    low: Support,
    medium: Support,
    high: Support,
    xhigh: Support,
    max: Support,
}

impl ModelCapabilities {
    /// Looks up the abilities of `model`. `id`: the client's name for the model.
    pub fn for_model(model: &Model, id: &str) -> Self {
        let names: Vec<_> = model
            .targets
            .iter()
            .map(|target| target.model_name_for(model, id).model)
            .collect();
        let all = names
            .iter()
            .map(|name| capabilities(name))
            .reduce(Capabilities::intersect);
        let abilities = all.unwrap_or_default();
        ModelCapabilities {
            capabilities: abilities,
            efforts: (abilities.effort == Some(true))
                .then(|| common_efforts(names.iter().map(AsRef::as_ref)))
                .flatten(),
        }
    }

    /// Returns the abilities in the form of OpenAI's list; `None` if none is known.
    pub fn card(&self) -> Option<CardCapabilities> {
        let known = self.capabilities;
        (known != Capabilities::default()).then(|| CardCapabilities {
            vision: known.vision,
            function_calling: known.tools,
            reasoning: known.reasoning,
            structured_outputs: known.structured_outputs,
            reasoning_effort: self.efforts.clone(),
        })
    }

    /// Returns the abilities in the form of Anthropic's list; `None` if none is known.
    pub(crate) fn info(&self) -> Option<InfoCapabilities> {
        let known = self.capabilities;
        let support = |supported: Option<bool>| supported.map(|supported| Support { supported });
        let efforts = self.efforts.as_deref().unwrap_or_default();
        let level = |name| Support {
            supported: efforts.contains(&name),
        };
        (known != Capabilities::default()).then(|| InfoCapabilities {
            image_input: support(known.vision),
            structured_outputs: support(known.structured_outputs),
            thinking: support(known.reasoning),
            effort: known.effort.map(|supported| EffortSupport {
                supported,
                low: level("low"),
                medium: level("medium"),
                high: level("high"),
                xhigh: level("xhigh"),
                max: level("max"),
            }),
        })
    }
}
