"""A worker's configuration: what the YAML may say, and the one loader that reads and checks it whole.

`document` knows the lines, `settings` the fields, `reading` the files and references, `core_json` what the
Rust side gets. Every problem is reported at once, each with its place; secrets stand in files of their own
and are never part of a message.
"""

from proofgate.config.config import Config
from proofgate.config.loading import load, load_settings
from proofgate.config.problems import InvalidConfigError, Problem

__all__ = ["Config", "InvalidConfigError", "Problem", "load", "load_settings"]
