"""Association tests: WEAT, SEAT and CEAT. A word is put into text by itself, by templates or by contexts."""
