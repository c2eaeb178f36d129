"""Word sets, tests, groups, traits and benchmarks: schema, readers and data files."""
