//! Follows the answers of each tenant and model.

use crate::drift::compare;
use crate::window::Window;
use crate::{Measures, Settings, WindowReport};
use std::collections::HashMap;
use std::sync::Arc;

/// A tenant and a model.
type Pair = (Arc<str>, Arc<str>);

/// Compares the answers of each pair of tenant and model, window by window, with a reference: the first full window.
///
/// After a finding the next full window becomes the reference, so that a change is told once. The window that was found is
/// not taken for that: it was chosen for being unlike.
pub struct Monitor {
    settings: Settings,
    pairs: HashMap<Pair, Followed>,
    /// Answers taken.
    taken: u64,
}

struct Followed {
    reference: Option<Window>,
    current: Window,
    windows: u64,
    /// Answers of the current window that were flagged.
    flagged: usize,
    /// When its last answer came, counted in answers.
    last: u64,
}

/// What is wrong with one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// It repeats groups of words.
    Repetition,
    /// One block of it stands again and again in a row.
    Loop,
}

impl Flag {
    /// Its name in records and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repetition => "repetitive",
            Self::Loop => "loop",
        }
    }
}

/// Of so many flagged answers of a window each is worth a record; the others are only counted.
const MOST_RECORDED: usize = 10;

/// What came of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnswerOutcome {
    /// What is wrong with it.
    pub flags: Vec<Flag>,
    /// Whether that is worth a record: not when many answers of the window have been flagged before.
    pub is_worth_a_record: bool,
    /// Whether it is the first of its pair.
    pub is_first: bool,
    /// The window that it filled.
    pub window: Option<WindowReport>,
    /// The pair that was forgotten for its own.
    pub forgotten: Option<Pair>,
}

impl Monitor {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Monitor {
            settings,
            pairs: HashMap::new(),
            taken: 0,
        }
    }

    /// How answers are analysed.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// How many pairs are followed.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Takes the measures of one answer.
    pub fn take(&mut self, tenant: &Arc<str>, model: &Arc<str>, measures: &Measures) -> AnswerOutcome {
        self.taken += 1;
        let pair = (Arc::clone(tenant), Arc::clone(model));
        let is_full = self.pairs.len() >= self.settings.pairs.max(1);
        let forgotten = if is_full && !self.pairs.contains_key(&pair) {
            let oldest = self.pairs.iter().min_by_key(|(_, followed)| followed.last);
            let oldest = oldest.map(|(pair, _)| pair.clone());
            oldest.inspect(|oldest| {
                self.pairs.remove(oldest);
            })
        } else {
            None
        };
        let followed = self.pairs.entry(pair).or_insert_with(|| Followed {
            reference: None,
            current: Window::default(),
            windows: 0,
            flagged: 0,
            last: 0,
        });
        let is_first = followed.last == 0;
        followed.last = self.taken;
        let flags = flags(measures, &self.settings);
        followed.flagged += usize::from(!flags.is_empty());
        let is_worth_a_record = !flags.is_empty() && followed.flagged <= MOST_RECORDED;
        followed.current.take(measures);
        let window =
            (followed.current.answers >= self.settings.window.max(1)).then(|| followed.turn(&self.settings));
        AnswerOutcome {
            flags,
            is_worth_a_record,
            is_first,
            window,
            forgotten,
        }
    }
}

impl Followed {
    fn turn(&mut self, settings: &Settings) -> WindowReport {
        self.windows += 1;
        self.flagged = 0;
        let window = std::mem::take(&mut self.current);
        let Some(reference) = &self.reference else {
            let report = WindowReport::of(&window, self.windows, Vec::new());
            self.reference = Some(window);
            return report;
        };
        let tests = compare(reference, &window, settings, self.windows);
        if tests.iter().any(|test| test.differs) {
            self.reference = None;
        }
        WindowReport::of(&window, self.windows, tests)
    }
}

fn flags(measures: &Measures, settings: &Settings) -> Vec<Flag> {
    let Some(repetition) = measures.repetition else {
        return Vec::new();
    };
    let repeats = repetition.share >= settings.repetition;
    let flags = [
        repeats.then_some(Flag::Repetition),
        repetition.is_loop.then_some(Flag::Loop),
    ];
    flags.into_iter().flatten().collect()
}
