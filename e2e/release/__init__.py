"""What `make release` makes, as a stranger gets it: installed, pulled by digest, and verified by signature."""
