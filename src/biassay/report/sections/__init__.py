"""What a page is made of: one function a section, each with its own template; None where the run has no data for it."""
