"""Bias benchmarks: BBQ, CrowS-Pairs and StereoSet."""
