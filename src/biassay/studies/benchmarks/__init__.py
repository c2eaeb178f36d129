"""Benchmarks of bias: BBQ, CrowS-Pairs and StereoSet."""
