//! The features by which windows of answers are compared, and how a comparison came out.

/// What of answers is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Entropy of tokens: Kolmogorov-Smirnov.
    Entropy,
    /// Which tokens answers begin with: the Jensen-Shannon divergence of the mean distributions, by permutation.
    FirstToken,
    /// Length in tokens: Kolmogorov-Smirnov.
    Length,
    /// Repetition: Kolmogorov-Smirnov.
    Repetition,
    /// How many are refusals: Fisher's exact test.
    Refusal,
    /// How many end because they are long enough: Fisher's exact test.
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

    /// Its name in records and metrics.
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

/// One feature of a window against the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FeatureTest {
    /// Which one.
    pub feature: Feature,
    /// Values of each side that were compared.
    pub sample_size: usize,
    /// How far they are apart, 0 to 1: the greatest difference of distribution functions, of shares, or the divergence in bits.
    pub distance: f64,
    /// How likely a distance as large is where nothing has changed, at most.
    pub p_value: f64,
    /// Whether that is below the level.
    pub is_significant: bool,
}
