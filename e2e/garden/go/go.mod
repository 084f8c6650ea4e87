module proofgate.dev/garden

go 1.26
