"""Kokoro-82M in torch, made for batches."""
