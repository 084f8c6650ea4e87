//! Exact limits for each tenant and key: reserve, settle, refund, hand over.
#![forbid(unsafe_code)]
