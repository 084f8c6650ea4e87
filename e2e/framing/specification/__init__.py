"""The framing specification: what the front door must accept and what it must refuse, rule by rule."""
