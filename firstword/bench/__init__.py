"""Measuring a container from outside: what `firstword bench tts` runs."""
