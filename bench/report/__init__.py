"""From a result to what people read: the tables and plots of docs/reference/benchmarks.md.

python -m bench.report --check     are they what bench/results/data-plane.json says?
python -m bench.report --write     make them so
"""
