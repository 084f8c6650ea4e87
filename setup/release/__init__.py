"""Builds all installable files of one version reproducibly into one folder: `make release VERSION=x`."""
