//! The section `models`: names that clients may request, and the providers that serve them.

use serde::Deserialize;

use crate::fallback_reasons::FallbackReasons;

/// A model, under the name that clients request.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Model {
    pub name: String,
    /// The provider; `None` if there are routes.
    #[serde(default)]
    pub provider: Option<String>,
    /// The provider's name for the model; `None`: `name`.
    #[serde(default)]
    pub upstream_model: Option<String>,
    /// The providers that share the requests.
    #[serde(default)]
    pub routes: Vec<Route>,
    /// The providers for requests that failed at all others, in the order of use.
    #[serde(default)]
    pub fallbacks: Vec<Fallback>,
    /// The failures after which a request is sent to the next provider.
    #[serde(default, rename = "fallbackOn")]
    pub fall_back_on: FallbackReasons,
    /// Tokens that are reserved for the response if the request sets no maximum.
    pub max_output_tokens: u64,
}

/// A provider that gets a share of the requests for a model.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Route {
    pub provider: String,
    #[serde(default)]
    pub upstream_model: Option<String>,
    /// The route's weight; a route of weight 0 only gets requests that failed at others.
    pub weight: u32,
}

/// A provider for requests that failed at all others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fallback {
    pub provider: String,
    #[serde(default)]
    pub upstream_model: Option<String>,
}

/// A provider that serves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target<'m> {
    pub provider: &'m str,
    pub upstream_model: &'m str,
    /// The target's weight; a target of weight 0 only gets requests that failed at others.
    pub weight: u32,
}

impl Model {
    /// Returns the providers that serve the model: those that share the requests, then the
    /// fallbacks.
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
