"""Hugging Face encoders and language models."""
