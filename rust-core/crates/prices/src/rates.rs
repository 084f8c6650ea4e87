//! What single tokens cost, and what an exchange comes to at these rates.

/// The most that is booked for one exchange, in nanodollars (some nine million dollars), so that sums stay far from their
/// ends.
pub const MAX_COST: u64 = 1 << 53;

/// The largest price of a token: a dollar.
pub(crate) const MAX_PER_TOKEN: u64 = 1_000_000_000_000;
/// The largest price of a request: a thousand dollars.
pub(crate) const MAX_PER_REQUEST: u64 = 1_000 * MAX_PER_TOKEN;

const PICODOLLARS_PER_NANODOLLAR: u128 = 1000;

/// What tokens cost, in picodollars (10⁻¹² USD) each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// A token of a prompt.
    pub input: u64,
    /// One that was read from a cache.
    pub cached_input: u64,
    /// One that was written to a cache.
    pub cache_write: u64,
    /// One that was written to a cache that keeps it for longer than five minutes.
    pub cache_write_1h: u64,
    /// One of audio.
    pub audio_input: u64,
    /// A token of an answer, also one of reasoning.
    pub output: u64,
    /// One of audio.
    pub audio_output: u64,
}

/// The tokens of an exchange: totals, and parts of them. A part that is more than what is left of its total counts as that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Of the prompt, all.
    pub prompt: u64,
    /// Of the prompt, those read from a cache.
    pub cached: u64,
    /// Of the prompt, those written to a cache.
    pub cache_write: u64,
    /// Of those written to a cache, those that it keeps for longer than five minutes.
    pub cache_write_1h: u64,
    /// Of the prompt, those of audio.
    pub audio_prompt: u64,
    /// Of the answer, all.
    pub completion: u64,
    /// Of the answer, those of audio.
    pub audio_completion: u64,
}

impl Rates {
    /// The dearer of each rate.
    #[must_use]
    pub fn max_each(self, other: Self) -> Self {
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

    /// What an exchange costs, in nanodollars: the exact sum, rounded up once, [`MAX_COST`] at most. `besides`: what it
    /// costs besides its tokens, in picodollars.
    ///
    /// Every token is charged once: as read from a cache before written to one before audio before plain, because audio
    /// that was read from a cache is counted as both.
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

    /// The most that an exchange of so many tokens can cost, in nanodollars: all of its prompt at the dearest price of a
    /// prompt's tokens, all of its answer at the dearest of an answer's. `is_kept_longer`: whether the request asks for a
    /// cache that keeps what is written for longer than five minutes.
    #[must_use]
    pub(crate) fn max_cost(&self, besides: u128, prompt: u64, completion: u64, is_kept_longer: bool) -> u64 {
        let input = self.input.max(self.cached_input);
        let input = input.max(self.cache_write).max(self.audio_input);
        let longer = if is_kept_longer { self.cache_write_1h } else { 0 };
        let output = self.output.max(self.audio_output);
        total_cost(besides, [(prompt, input.max(longer)), (completion, output)])
    }
}

/// 64 bits of tokens times 41 bits of a price fit into 128 bits however often they are added here.
fn total_cost<const N: usize>(besides: u128, parts: [(u64, u64); N]) -> u64 {
    let sum = parts.iter().fold(besides, |sum, &(tokens, price)| {
        sum.saturating_add(u128::from(tokens) * u128::from(price))
    });
    let nanodollars = sum.div_ceil(PICODOLLARS_PER_NANODOLLAR);
    u64::try_from(nanodollars).unwrap_or(u64::MAX).min(MAX_COST)
}
