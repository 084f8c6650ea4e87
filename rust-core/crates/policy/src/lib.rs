//! Who may use what: tenants, API keys, model allow-lists.
