use crate::{RefusalSignal, Repetition, TokenDistribution};

/// The numeric measures of a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseMeasurements {
    /// The entropy of its tokens, if the response reports their probabilities.
    pub entropy: Option<Entropy>,
    /// The distribution of its first token, with the number of alternatives used for comparing entropies; `None` if fewer
    /// are reported.
    pub first_token: Option<TokenDistribution>,
    /// Number of tokens, as counted by the provider; filled in by the caller, if known.
    pub tokens: Option<u64>,
    /// Whether it is a refusal.
    pub refusal: Option<RefusalSignal>,
    /// Whether it ended at the length limit.
    pub hit_length_limit: bool,
    /// The repetition in its text; `None` if the text is too short.
    pub repetition: Option<Repetition>,
    /// Bytes of its text.
    pub text_bytes: usize,
    /// Whether the response continues beyond the part that was read.
    pub is_truncated: bool,
}

/// The entropy of a response's tokens: means over the tokens with a reported distribution, in bits per token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entropy {
    /// The number of these tokens.
    pub tokens: u64,
    /// The mean of the minimum entropy of each token.
    pub min: f64,
    /// The mean of the maximum entropy of each token; `None` if the vocabulary is not known.
    pub max: Option<f64>,
    /// The mean reported probability: 1 if everything was reported.
    pub reported_probability: f64,
    /// The mean of the minimum entropy of each token, computed from the same number of alternatives
    /// for each; `None` if any token reports fewer. Only this value is compared: the bounds are
    /// tighter if more alternatives are reported.
    pub comparable_min: Option<f64>,
}
