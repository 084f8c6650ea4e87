//! Prices per token, and the cost of an exchange at these rates.

/// The maximum cost booked for one exchange, in nanodollars (about nine million dollars), so that sums cannot overflow.
pub const MAX_COST: u64 = 1 << 53;

/// The maximum price of a token: one dollar.
pub(crate) const MAX_PER_TOKEN: u64 = 1_000_000_000_000;
/// The maximum price of a request: a thousand dollars.
pub(crate) const MAX_PER_REQUEST: u64 = 1_000 * MAX_PER_TOKEN;

const PICODOLLARS_PER_NANODOLLAR: u128 = 1000;

/// Prices per token, in picodollars (10⁻¹² USD).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// A prompt token.
    pub input: u64,
    /// A prompt token read from a cache.
    pub cached_input: u64,
    /// A prompt token written to a cache.
    pub cache_write: u64,
    /// A prompt token written to a cache with a lifetime over five minutes.
    pub cache_write_1h: u64,
    /// An audio token in the prompt.
    pub audio_input: u64,
    /// A token in the answer, including reasoning.
    pub output: u64,
    /// An audio token in the answer.
    pub audio_output: u64,
}

/// The tokens of an exchange: totals and parts of them. A part is capped at what is left of its total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// All tokens in the prompt.
    pub prompt: u64,
    /// Prompt tokens read from a cache.
    pub cached: u64,
    /// Prompt tokens written to a cache.
    pub cache_write: u64,
    /// Those of `cache_write` with a lifetime over five minutes.
    pub cache_write_1h: u64,
    /// Audio tokens in the prompt.
    pub audio_prompt: u64,
    /// All tokens in the answer.
    pub completion: u64,
    /// Audio tokens in the answer.
    pub audio_completion: u64,
}

impl Rates {
    /// Returns the higher value of each rate.
    #[must_use]
    pub fn elementwise_max(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached_input: self.cached_input.max(other.cached_input),
            cache_write: self.cache_write.max(other.cache_write),
            cache_write_1h: self.cache_write_1h.max(other.cache_write_1h),
            audio_input: self.audio_input.max(other.audio_input),
            output: self.output.max(other.output),
            audio_output: self.audio_output.max(other.audio_output),
        }
    }

    /// Returns the cost of an exchange in nanodollars: the exact sum, rounded up once, at most [`MAX_COST`]. `besides` is
    /// the cost apart from its tokens, in picodollars.
    ///
    /// Every token is charged once, in this order: read from a cache, written to a cache, audio, plain. The order matters
    /// because audio read from a cache is counted as both.
    #[must_use]
    pub fn cost(&self, besides: u128, tokens: &Tokens) -> u64 {
        let cached = tokens.cached.min(tokens.prompt);
        let left = tokens.prompt - cached;
        let written = tokens.cache_write.min(left);
        let left = left - written;
        let longer = tokens.cache_write_1h.min(written);
        let audio = tokens.audio_prompt.min(left);
        let audio_completion = tokens.audio_completion.min(tokens.completion);
        let parts = [
            (cached, self.cached_input),
            (written - longer, self.cache_write),
            (longer, self.cache_write_1h),
            (audio, self.audio_input),
            (left - audio, self.input),
            (audio_completion, self.audio_output),
            (tokens.completion - audio_completion, self.output),
        ];
        total_cost(besides, parts)
    }

    /// Returns the maximum cost in nanodollars of an exchange with these tokens: the whole prompt at the highest price of a
    /// prompt token, the whole answer at the highest price of an answer token. `is_kept_longer` is whether the request asks
    /// for a cache with a lifetime over five minutes.
    #[must_use]
    pub(crate) fn max_cost(&self, besides: u128, prompt: u64, completion: u64, is_kept_longer: bool) -> u64 {
        let input = self.input.max(self.cached_input);
        let input = input.max(self.cache_write).max(self.audio_input);
        let longer = if is_kept_longer { self.cache_write_1h } else { 0 };
        let output = self.output.max(self.audio_output);
        total_cost(besides, [(prompt, input.max(longer)), (completion, output)])
    }
}

/// Returns the total cost. It cannot overflow: a product of 64 bits of tokens and 41 bits of a
/// price leaves enough of 128 bits for all sums here.
fn total_cost<const N: usize>(besides: u128, parts: [(u64, u64); N]) -> u64 {
    let sum = parts.iter().fold(besides, |sum, &(tokens, price)| {
        sum.saturating_add(u128::from(tokens) * u128::from(price))
    });
    let nanodollars = sum.div_ceil(PICODOLLARS_PER_NANODOLLAR);
    u64::try_from(nanodollars).unwrap_or(u64::MAX).min(MAX_COST)
}
