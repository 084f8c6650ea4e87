"""What the API server refuses of `analysis` besides single fields."""

#: Rules over the fields of the section.
ANALYSIS_RULES = (
    {
        "rule": "self.window * self.maxPairs <= 400000",
        "message": "spec.analysis: window times maxPairs must be at most 400000",
    },
)
