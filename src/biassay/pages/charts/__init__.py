"""Figures as Vega-Lite: one file a figure, drawn for the page and for print from the same description."""
