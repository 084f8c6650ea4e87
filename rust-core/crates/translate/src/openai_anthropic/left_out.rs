use crate::dropped::{Dropped, OTHER_FIELDS, no_counterpart, plain_name};
use crate::{Untranslatable, UntranslatableFields};

/// The fields of a request that were left out, or what refuses them.
pub(super) struct LeftOut(Dropped);

impl LeftOut {
    /// Nothing yet.
    pub(super) fn new(fields: UntranslatableFields) -> Self {
        LeftOut(Dropped::new(fields))
    }

    /// The names of what was left out.
    pub(super) fn into_names(self) -> Vec<&'static str> {
        self.0.into_names()
    }

    /// Leaves out a field, known to the list of what was left out as `name`.
    ///
    /// # Errors
    /// [`Untranslatable`] when such fields are refused.
    pub(super) fn leave(
        &mut self,
        name: &'static str,
        path: impl FnOnce() -> String,
    ) -> Result<(), Untranslatable> {
        self.0.drop_or(name, 0, || no_counterpart(path()))
    }

    /// Leaves out a field of the body when it is there.
    ///
    /// # Errors
    /// As for [`leave`](LeftOut::leave).
    pub(super) fn leave_if(&mut self, present: bool, name: &'static str) -> Result<(), Untranslatable> {
        if present {
            self.leave(name, || name.to_owned())?;
        }
        Ok(())
    }

    /// Leaves out what an object has besides the fields that its type knows.
    ///
    /// # Errors
    /// As for [`leave`](LeftOut::leave).
    pub(super) fn leave_unknown(
        &mut self,
        unknown: Option<&str>,
        path: impl FnOnce(&str) -> String,
    ) -> Result<(), Untranslatable> {
        match unknown {
            Some(name) => self.leave(OTHER_FIELDS, || path(plain_name(name))),
            None => Ok(()),
        }
    }
}
