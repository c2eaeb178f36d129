"""Recurrent encoders: ELMo, InferSent and GenSen."""
