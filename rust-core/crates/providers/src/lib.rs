//! How a request is rewritten for an upstream, and how usage is read from its answer.
