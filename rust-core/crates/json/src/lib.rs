//! A strict JSON reader that allocates nothing and knows where every value stands.
#![forbid(unsafe_code)]
