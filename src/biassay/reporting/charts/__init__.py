"""Figures as Vega-Lite specifications, one module per chart."""
