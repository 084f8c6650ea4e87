use crate::{Refusal, Repetition, TokenDistribution};

/// The numbers that an answer leaves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measures {
    /// Of its tokens, where it tells their probabilities.
    pub entropy: Option<Entropy>,
    /// The distribution of its first token, by as many alternatives as entropies are compared by; `None` where it does not
    /// tell so many.
    pub first_token: Option<TokenDistribution>,
    /// Tokens, as the provider counted them; whoever knows fills this in.
    pub tokens: Option<u64>,
    /// Whether it is a refusal.
    pub refusal: Option<Refusal>,
    /// Whether it ended because it was long enough.
    pub hit_length_limit: bool,
    /// Whether it repeats itself; `None` for a short one.
    pub repetition: Option<Repetition>,
    /// Bytes of its text.
    pub text_bytes: usize,
    /// Whether more of it came than was read.
    pub is_truncated: bool,
}

/// The entropy of an answer's tokens: means over those whose distribution was told, in bits per token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entropy {
    /// How many tokens those are.
    pub tokens: u64,
    /// The mean of the least that each can have.
    pub min: f64,
    /// The mean of the most that each can have; `None` where the vocabulary is not known.
    pub max: Option<f64>,
    /// How likely what was told is, on average: 1 when all was told.
    pub reported_probability: f64,
    /// The mean of the least that each can have by the same number of alternatives for all; `None` where one does not tell so
    /// many. Only this is compared: with more alternatives told, the bounds are closer.
    pub comparable: Option<f64>,
}
