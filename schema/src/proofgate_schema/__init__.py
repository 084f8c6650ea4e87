"""The sections of the configuration that gateway and operator share."""

__version__ = "0.1.0"
