module proofgate.dev/e2e/cluster/tools/pause

go 1.26.0
