//! The only crate that knows Python: the extension module proofgate._core.
