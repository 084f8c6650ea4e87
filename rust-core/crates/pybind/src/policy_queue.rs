//! The queues of policies that are evaluated in Python: one call for a batch of requests, and one for their verdicts.

use std::sync::{Arc, Mutex, PoisonError};

use proofgate_dataplane::{self as dataplane, PolicyFailure, Replacement, Verdict};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::timeout::seconds;

/// The queue of one policy; see `_core.pyi`.
#[pyclass(frozen)]
pub(crate) struct PolicyQueue(Mutex<Option<Arc<dataplane::PolicyQueue>>>);

/// One request in the queue; see `_core.pyi`.
#[pyclass(frozen)]
pub(crate) struct PolicyItem {
    item: Mutex<Option<dataplane::PolicyItem>>,
    #[pyo3(get)]
    tenant: String,
    #[pyo3(get)]
    model: String,
    #[pyo3(get)]
    endpoint: &'static str,
    #[pyo3(get)]
    texts: Py<PyTuple>,
}

/// A verdict from Python: its kind, its rule or code, its reason, its score, its replacements.
type VerdictFields = (String, String, String, u32, Vec<(usize, usize, usize, String)>);

impl PolicyQueue {
    pub(crate) fn new(queue: dataplane::PolicyQueue) -> Self {
        PolicyQueue(Mutex::new(Some(Arc::new(queue))))
    }
}

#[pymethods]
impl PolicyQueue {
    fn take_policy_batch(
        &self,
        python: Python<'_>,
        most: usize,
        timeout_seconds: f64,
    ) -> PyResult<Option<Vec<PolicyItem>>> {
        let patience = seconds(timeout_seconds)?;
        let queue = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let taken = queue.and_then(|queue| python.detach(|| queue.take_batch(most, patience)));
        let Some(batch) = taken else { return Ok(None) };
        let items = batch.into_iter().map(|item| PolicyItem::new(python, item));
        items.collect::<PyResult<Vec<_>>>().map(Some)
    }

    #[expect(
        clippy::unused_self,
        reason = "Python needs this method in addition to the other one"
    )]
    fn return_verdicts(&self, verdicts: Vec<(Bound<'_, PolicyItem>, Bound<'_, PyAny>)>) -> usize {
        let answered = verdicts.iter().filter(|(item, said)| {
            let verdict = parse_verdict(said).unwrap_or(Verdict::Failed(PolicyFailure::BadVerdict));
            let item = item
                .get()
                .item
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            item.is_some_and(|item| item.respond(verdict))
        });
        answered.count()
    }

    fn close(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

#[pymethods]
impl PolicyItem {
    fn is_awaited(&self) -> bool {
        let item = self.item.lock().unwrap_or_else(PoisonError::into_inner);
        item.as_ref().is_some_and(dataplane::PolicyItem::is_awaited)
    }
}

impl PolicyItem {
    fn new(python: Python<'_>, item: dataplane::PolicyItem) -> PyResult<Self> {
        let texts = PyTuple::new(python, item.texts())?.unbind();
        Ok(PolicyItem {
            tenant: item.tenant().to_owned(),
            model: item.model().to_owned(),
            endpoint: item.endpoint(),
            texts,
            item: Mutex::new(Some(item)),
        })
    }
}

fn parse_verdict(said: &Bound<'_, PyAny>) -> Option<Verdict> {
    let (which, word, reason, score, replacements): VerdictFields = said.extract().ok()?;
    Some(match which.as_str() {
        "allow" => Verdict::Allow,
        "deny" => Verdict::Deny { code: word, reason },
        "flag" => Verdict::Flag { rule: word, score },
        "replace" | "replace_reversibly" => Verdict::Replace {
            rule: word,
            reversible: which == "replace_reversibly",
            replacements: replacements.into_iter().map(parse_replacement).collect(),
        },
        "failed" => Verdict::Failed(
            PolicyFailure::ALL
                .into_iter()
                .find(|failure| failure.as_str() == word)?,
        ),
        _ => return None,
    })
}

fn parse_replacement((text, start, end, by): (usize, usize, usize, String)) -> Replacement {
    Replacement {
        text_index: text,
        start,
        end,
        replacement: by,
    }
}
