//! The section `models`: names that clients may ask for, and who serves them.

use serde::Deserialize;

use crate::reasons::Reasons;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Model {
    pub name: String,
    /// The one that serves it, where there are no routes.
    #[serde(default)]
    pub provider: Option<String>,
    /// Its name there; that in `name` when it is absent.
    #[serde(default)]
    pub upstream_model: Option<String>,
    /// Those that share its requests.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// Those that get what failed at all others, in this order.
    #[serde(default)]
    pub fallbacks: Vec<Fallback>,
    /// What sends a request on to the next of them.
    #[serde(default, rename = "fallbackOn")]
    pub fall_back_on: Reasons,
    /// Tokens set aside for the answer when a request names no maximum.
    pub max_output_tokens: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Route {
    pub provider: String,
    #[serde(default)]
    pub upstream_model: Option<String>,
    /// Its share of the requests; of 0 it gets those that failed elsewhere.
    pub weight: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fallback {
    pub provider: String,
    #[serde(default)]
    pub upstream_model: Option<String>,
}

/// A provider that answers for a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'m> {
    pub provider: &'m str,
    pub upstream_model: &'m str,
    /// Its share of the requests; of 0 it gets those that failed elsewhere.
    pub weight: u32,
}

impl Model {
    /// The providers that answer for it: those that share its requests, then those of what failed elsewhere.
    pub fn targets(&self) -> impl Iterator<Item = Target<'_>> {
        let routes = self.routes.iter();
        let routes = routes.map(|route| (&route.provider, &route.upstream_model, route.weight));
        let only = self.provider.iter();
        let only = only.map(|provider| (provider, &self.upstream_model, 1));
        let fallbacks = self.fallbacks.iter();
        let fallbacks = fallbacks.map(|fallback| (&fallback.provider, &fallback.upstream_model, 0));
        let all = routes.chain(only).chain(fallbacks);
        all.map(|(provider, upstream_model, weight)| Target {
            provider,
            upstream_model: upstream_model.as_deref().unwrap_or(&self.name),
            weight,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(json: &str) -> Vec<(String, String, u32)> {
        let model: Model = serde_json::from_str(json).unwrap();
        let targets = model.targets();
        targets
            .map(|target| {
                (
                    target.provider.into(),
                    target.upstream_model.into(),
                    target.weight,
                )
            })
            .collect()
    }

    #[test]
    fn a_fallback_gets_no_share_of_the_requests() {
        let found = targets(
            r#"{"name": "m", "provider": "a", "upstreamModel": null, "routes": [],
                "fallbacks": [{"provider": "b", "upstreamModel": "n"}], "fallbackOn": [], "maxOutputTokens": 1}"#,
        );
        let expected = [("a".into(), "m".into(), 1), ("b".into(), "n".into(), 0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn routes_have_the_shares_of_their_weights() {
        let found = targets(
            r#"{"name": "m", "routes": [{"provider": "a", "weight": 3}, {"provider": "b", "upstreamModel": "n",
                "weight": 1}], "maxOutputTokens": 1}"#,
        );
        let expected = [("a".into(), "m".into(), 3), ("b".into(), "n".into(), 1)];
        assert_eq!(found, expected);
    }
}
