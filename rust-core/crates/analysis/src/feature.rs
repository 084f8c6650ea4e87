//! The features by which windows of responses are compared, and the result of a comparison.

/// A compared property of responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Entropy of tokens: Kolmogorov-Smirnov test.
    Entropy,
    /// First tokens of responses: Jensen-Shannon divergence of the mean distributions, by permutation test.
    FirstToken,
    /// Length in tokens: Kolmogorov-Smirnov test.
    Length,
    /// Repetition: Kolmogorov-Smirnov test.
    Repetition,
    /// Share of refusals: Fisher's exact test.
    Refusal,
    /// Share of responses that end at the length limit: Fisher's exact test.
    LengthLimit,
}

impl Feature {
    /// Every feature.
    pub const ALL: [Self; 6] = [
        Self::Entropy,
        Self::FirstToken,
        Self::Length,
        Self::Repetition,
        Self::Refusal,
        Self::LengthLimit,
    ];

    /// Returns its name in records and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Entropy => "entropy",
            Self::FirstToken => "opening",
            Self::Length => "length",
            Self::Repetition => "repetition",
            Self::Refusal => "refusal",
            Self::LengthLimit => "cut",
        }
    }
}

/// The test of one feature of a window against the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeatureTest {
    /// The feature.
    pub feature: Feature,
    /// Number of compared values on each side.
    pub sample_size: usize,
    /// The distance, 0 to 1: the maximum difference of distribution functions, the difference of shares, or the divergence
    /// in bits.
    pub distance: f64,
    /// Upper bound of the probability of a distance this large if nothing has changed.
    pub p_value: f64,
    /// Whether the p-value is at most the significance level.
    pub is_significant: bool,
}
