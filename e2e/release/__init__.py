"""The output of `make release` as an outsider gets it: installed, pulled by digest, and verified by signature."""
