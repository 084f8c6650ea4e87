"""CEL rules of the section `analysis`."""

#: Rules over several fields of the section.
ANALYSIS_RULES = (
    {
        "rule": "self.window * self.maxPairs <= 400000",
        "message": "spec.analysis: window times maxPairs must be at most 400000",
    },
)
