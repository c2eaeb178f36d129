"""Find words in a corpus and sample the sentences around them."""
