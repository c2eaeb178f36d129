"""Discovery of words that models associate with groups: IBD and EIBD."""
