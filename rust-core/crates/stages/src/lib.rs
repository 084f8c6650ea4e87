//! Where the time of an exchange goes: a histogram for every stage of the hot path.
#![forbid(unsafe_code)]
