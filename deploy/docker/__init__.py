"""How images are made."""
