"""What is measured: one folder per study, with everything about it inside."""
