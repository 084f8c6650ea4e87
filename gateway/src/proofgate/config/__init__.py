"""A worker's configuration: the schema of the YAML file, and the loader that reads and checks it completely.

`document` parses the YAML with line numbers, `settings` defines the fields, `reading` reads the named files
and resolves references, and `core_json` creates the JSON for the Rust core. All problems are reported
together, each with its location. Secrets are in separate files and never part of a message.
"""

from proofgate.config.config import Config
from proofgate.config.loading import load, load_settings
from proofgate.config.problems import InvalidConfigError, Problem

__all__ = ["Config", "InvalidConfigError", "Problem", "load", "load_settings"]
