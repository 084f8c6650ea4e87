//! Rules over the text of requests and responses: packs, matching, verdicts.
#![forbid(unsafe_code)]
