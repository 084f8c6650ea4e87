//! Monitors the responses of each tenant and model.

use crate::drift::compare;
use crate::window::ResponseWindow;
use crate::{AnalysisSettings, ResponseMeasurements, WindowReport};
use std::collections::HashMap;
use std::sync::Arc;

/// A tenant and a model.
type TenantModel = (Arc<str>, Arc<str>);

/// Compares the responses of each pair of tenant and model, window by window, with a reference: the first full window.
///
/// After a finding, the next full window becomes the reference, so that a change is reported once. The window with the
/// finding is not used as the reference, because it was selected for being different.
pub struct DriftMonitor {
    settings: AnalysisSettings,
    pairs: HashMap<TenantModel, PairState>,
    /// Number of observed responses.
    response_count: u64,
}

struct PairState {
    reference: Option<ResponseWindow>,
    current: ResponseWindow,
    windows: u64,
    /// Flagged responses of the current window.
    flagged: usize,
    /// The number of the pair's last response, among all responses.
    last_seen: u64,
}

/// A defect of one response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseFlag {
    /// The response repeats groups of words.
    Repetition,
    /// The response repeats one block many times in a row.
    Loop,
}

impl ResponseFlag {
    /// Returns its name in records and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Repetition => "repetitive",
            Self::Loop => "loop",
        }
    }
}

/// Maximum number of flagged responses in a window that are recorded; further ones are only counted.
const MAX_RECORDED: usize = 10;

/// The result of observing a response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MonitorOutcome {
    /// The defects found in it.
    pub flags: Vec<ResponseFlag>,
    /// Whether the flags should be recorded; `false` if many responses of the window have been
    /// flagged before.
    pub should_record: bool,
    /// Whether it is the first response of its pair.
    pub is_first: bool,
    /// The report for the window that it completed.
    pub window: Option<WindowReport>,
    /// The pair that was evicted for this one.
    pub evicted: Option<TenantModel>,
}

impl DriftMonitor {
    /// Creates a monitor without any responses.
    #[must_use]
    pub fn new(settings: AnalysisSettings) -> Self {
        DriftMonitor {
            settings,
            pairs: HashMap::new(),
            response_count: 0,
        }
    }

    /// Returns the analysis settings.
    #[must_use]
    pub fn settings(&self) -> &AnalysisSettings {
        &self.settings
    }

    /// Returns the number of monitored pairs.
    #[must_use]
    pub fn pair_count(&self) -> usize {
        self.pairs.len()
    }

    /// Records the measures of one response.
    pub fn observe(
        &mut self,
        tenant: &Arc<str>,
        model: &Arc<str>,
        measures: &ResponseMeasurements,
    ) -> MonitorOutcome {
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
        let window = (followed.current.response_count >= self.settings.window_size.max(1))
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

fn flags(measures: &ResponseMeasurements, settings: &AnalysisSettings) -> Vec<ResponseFlag> {
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
