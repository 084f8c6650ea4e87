"""What the operator costs, and how quickly it acts, on a true control plane without nodes."""
