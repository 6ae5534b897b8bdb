"""From words to phonemes, one module per family of languages.

Each front end takes what is to be said, in words, and gives tokens with their place in it. None is
safe from several threads at a time: `services/inference/text.py` sees to that.
"""
