"""From what is written to what is said: numbers, money, dates, units, addresses, signs. Pure.

One module per kind of thing, one file of words per language (`data/`). Where each said word stands
in the text is kept, so that "$5" is one word on the screen although it is two in the ear.
"""

from services.inference.normalise.characters import clean
from services.inference.normalise.scan import normalise
from services.inference.normalise.spoken import Spoken

__all__ = ["Spoken", "clean", "normalise"]
