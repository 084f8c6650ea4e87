"""Writes the marked figures of the pages in docs, and their charts, from the results.

python -m bench.report --check     are they what bench/results/*.json says?
python -m bench.report --write     make them so

A module for each subject has its tables; `pages` finds the places for them.
"""
