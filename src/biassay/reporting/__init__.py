"""Reports for terminal, browser, notebook and paper."""
