//! Strict sans-IO HTTP/1.1: the parser that is the smuggling guard.
