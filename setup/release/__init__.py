"""Everything that a stranger installs of one version, made reproducibly into one folder: `make release VERSION=x`."""
