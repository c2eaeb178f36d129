"""Words tied to groups: IBD and EIBD."""
