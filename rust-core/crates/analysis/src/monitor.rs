//! Follows the answers of each tenant and model.

use crate::drift::compare;
use crate::window::ResponseWindow;
use crate::{AnalysisSettings, Measures, WindowReport};
use std::collections::HashMap;
use std::sync::Arc;

/// A tenant and a model.
type TenantModel = (Arc<str>, Arc<str>);

/// Compares the answers of each pair of tenant and model, window by window, with a reference: the first full window.
///
/// After a finding the next full window becomes the reference, so that a change is told once. The window that was found is
/// not taken for that: it was chosen for being unlike.
pub struct DriftMonitor {
    settings: AnalysisSettings,
    pairs: HashMap<TenantModel, PairState>,
    /// Answers taken.
    response_count: u64,
}

struct PairState {
    reference: Option<ResponseWindow>,
    current: ResponseWindow,
    windows: u64,
    /// Answers of the current window that were flagged.
    flagged: usize,
    /// When its last answer came, counted in answers.
    last_seen: u64,
}

/// What is wrong with one answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFlag {
    /// It repeats groups of words.
    Repetition,
    /// One block of it stands again and again in a row.
    Loop,
}

impl ResponseFlag {
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
const MAX_RECORDED: usize = 10;

/// What came of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MonitorOutcome {
    /// What is wrong with it.
    pub flags: Vec<ResponseFlag>,
    /// Whether that is worth a record: not when many answers of the window have been flagged before.
    pub should_record: bool,
    /// Whether it is the first of its pair.
    pub is_first: bool,
    /// The window that it filled.
    pub window: Option<WindowReport>,
    /// The pair that was forgotten for its own.
    pub evicted: Option<TenantModel>,
}

impl DriftMonitor {
    /// One that has seen nothing.
    #[must_use]
    pub fn new(settings: AnalysisSettings) -> Self {
        DriftMonitor {
            settings,
            pairs: HashMap::new(),
            response_count: 0,
        }
    }

    /// How answers are analysed.
    #[must_use]
    pub fn settings(&self) -> &AnalysisSettings {
        &self.settings
    }

    /// How many pairs are followed.
    #[must_use]
    pub fn pair_count(&self) -> usize {
        self.pairs.len()
    }

    /// Takes the measures of one answer.
    pub fn observe(&mut self, tenant: &Arc<str>, model: &Arc<str>, measures: &Measures) -> MonitorOutcome {
        self.response_count += 1;
        let pair = (Arc::clone(tenant), Arc::clone(model));
        let is_full = self.pairs.len() >= self.settings.max_pairs.max(1);
        let forgotten = if is_full && !self.pairs.contains_key(&pair) {
            let oldest = self.pairs.iter().min_by_key(|(_, followed)| followed.last_seen);
            let oldest = oldest.map(|(pair, _)| pair.clone());
            oldest.inspect(|oldest| {
                self.pairs.remove(oldest);
            })
        } else {
            None
        };
        let followed = self.pairs.entry(pair).or_insert_with(|| PairState {
            reference: None,
            current: ResponseWindow::default(),
            windows: 0,
            flagged: 0,
            last_seen: 0,
        });
        let is_first = followed.last_seen == 0;
        followed.last_seen = self.response_count;
        let flags = flags(measures, &self.settings);
        followed.flagged += usize::from(!flags.is_empty());
        let is_worth_a_record = !flags.is_empty() && followed.flagged <= MAX_RECORDED;
        followed.current.add(measures);
        let window = (followed.current.answers >= self.settings.window_size.max(1))
            .then(|| followed.complete_window(&self.settings));
        MonitorOutcome {
            flags,
            should_record: is_worth_a_record,
            is_first,
            window,
            evicted: forgotten,
        }
    }
}

impl PairState {
    fn complete_window(&mut self, settings: &AnalysisSettings) -> WindowReport {
        self.windows += 1;
        self.flagged = 0;
        let window = std::mem::take(&mut self.current);
        let Some(reference) = &self.reference else {
            let report = WindowReport::from_window(&window, self.windows, Vec::new());
            self.reference = Some(window);
            return report;
        };
        let tests = compare(reference, &window, settings, self.windows);
        if tests.iter().any(|test| test.is_significant) {
            self.reference = None;
        }
        WindowReport::from_window(&window, self.windows, tests)
    }
}

fn flags(measures: &Measures, settings: &AnalysisSettings) -> Vec<ResponseFlag> {
    let Some(repetition) = measures.repetition else {
        return Vec::new();
    };
    let repeats = repetition.repeated_share >= settings.repetition_threshold;
    let flags = [
        repeats.then_some(ResponseFlag::Repetition),
        repetition.is_loop.then_some(ResponseFlag::Loop),
    ];
    flags.into_iter().flatten().collect()
}
