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
    /// When its last answer came, counted in answers.
    last: u64,
}

/// What came of an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
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
    pub fn take(&mut self, tenant: &Arc<str>, model: &Arc<str>, measures: &Measures) -> Seen {
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
            last: 0,
        });
        followed.last = self.taken;
        followed.current.take(measures);
        let window =
            (followed.current.answers >= self.settings.window.max(1)).then(|| followed.turn(&self.settings));
        Seen { window, forgotten }
    }
}

impl Followed {
    fn turn(&mut self, settings: &Settings) -> WindowReport {
        self.windows += 1;
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
