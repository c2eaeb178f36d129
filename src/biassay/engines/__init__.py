"""Where the work runs: this machine, or a Ray cluster."""
