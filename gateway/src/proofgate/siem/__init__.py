"""Events about verified exchanges, sent to a collector for security monitoring (SIEM)."""
