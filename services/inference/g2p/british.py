"""What an American pronunciation is in British English, as misaki writes the two. Pure.

For words that no dictionary has: the network that reads those knows American English only. What
depends on more than the sounds (bath, hurry) stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

_VOWEL: Final = "AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻ"
_NEXT_IS_VOWEL: Final = f"(?=[ˈˌ]?[{_VOWEL}])"

# In this order: vowels before r first, which is only heard before another vowel.
_RULES: Final = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"[ɾT]", "t"),
        (r"ʔ", "t"),
        (r"ɜɹ", "ɜːɹ"),
        (r"ɔɹ", "ɔːɹ"),
        (r"ɑɹ", "ɑːɹ"),
        (r"ɛɹ", "ɛːɹ"),
        (r"[iɪ]ɹ", "ɪəɹ"),
        (r"[uʊ]ɹ", "ʊəɹ"),
        (rf"ɹ(?![ˈˌ]?[{_VOWEL}])", ""),
        (r"iə", "ɪə"),
        (rf"([ˈˌ][^{_VOWEL}ˈˌ]*)i", r"\1iː"),
        (rf"i{_NEXT_IS_VOWEL}", "ɪ"),
        (r"i(?=[^ː])", "iː"),
        (r"u", "uː"),
        (r"ɔ(?!ː)", "ɔː"),
        (r"æ", "a"),
        (r"ᵻ", "ɪ"),
        (r"O", "Q"),
    )
)


def from_american(phonemes: str, written: str) -> str:
    """`phonemes` of the word `written`; an `o` in it says which of two vowels an ɑ is."""
    for pattern, replacement in _RULES:
        phonemes = pattern.sub(replacement, phonemes)
    return re.sub("ɑ(?!ː)", "ɒ" if "o" in written.lower() else "ɑː", phonemes)
