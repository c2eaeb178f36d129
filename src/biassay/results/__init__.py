"""Records of a run and the folder that stores them."""
