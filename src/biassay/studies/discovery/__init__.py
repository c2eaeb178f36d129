"""Words associated with groups: IBD and EIBD."""
