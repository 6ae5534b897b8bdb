"""Cutting a pronounced text: nothing lost, nothing too long, the same every time."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.inference.pieces import (
    JOINT,
    LEAST_FIRST,
    LONG,
    PAUSE_S,
    SENTENCE,
    SPACE,
    Piece,
    Token,
    cut,
)


def tokens_of(text: str) -> list[Token]:
    """A stand-in for pronunciation: each word is its own phonemes, marks stand alone."""
    tokens = []
    position = 0
    for chunk in text.split(" "):
        word = chunk.rstrip(".,!?…;:—)")
        marks = chunk[len(word) :]
        parts = [word, *marks] if word else list(marks)
        for index, part in enumerate(parts):
            space = index == len(parts) - 1
            tokens.append(Token(part, space, position, position + len(part), part == word))
            position += len(part)
        position += 1
    return tokens


def spoken(pieces: tuple[Piece, ...]) -> list[str]:
    return [piece.phonemes for piece in pieces]


def test_a_short_text_is_one_piece_with_its_words_in_place() -> None:
    [piece] = cut(tokens_of("hi there, ann."))
    assert piece.phonemes == "hi there, ann."
    assert piece.pause_s == PAUSE_S[SENTENCE]
    assert [piece.phonemes[w.first : w.past] for w in piece.words] == ["hi", "there", "ann"]
    assert [(w.start, w.end) for w in piece.words] == [(0, 2), (3, 8), (10, 13)]


def test_nothing_gives_nothing() -> None:
    assert cut([]) == ()
    assert cut(tokens_of("... !")) == ()


def test_a_sentence_mark_is_the_best_place_then_a_clause_mark_then_a_space() -> None:
    assert spoken(cut(tokens_of("aa, bb. cc dd"), limit=10)) == ["aa, bb.", "cc dd"]
    assert spoken(cut(tokens_of("aa bb, cc dd"), limit=10)) == ["aa bb,", "cc dd"]
    assert spoken(cut(tokens_of("aa bb cc dd"), limit=7)) == ["aa bb", "cc dd"]


def test_an_early_mark_does_not_leave_a_stump() -> None:
    assert spoken(cut(tokens_of("a. bbb ccc ddd eee"), limit=12)) == ["a. bbb ccc", "ddd eee"]


def test_the_last_of_several_pieces_is_no_stump_either() -> None:
    sizes = [len(p.phonemes) for p in cut(tokens_of("abcd " * 70), limit=100)]
    assert len(sizes) == 4 and max(sizes) - min(sizes) <= 10


def test_a_closing_bracket_stays_with_its_sentence() -> None:
    assert spoken(cut(tokens_of("(aa bb.) cc dd."), limit=10)) == ["(aa bb.)", "cc dd."]


def test_an_unspoken_mark_stays_with_what_is_before_it() -> None:
    tokens = [
        Token("aaa", False, 0, 3, True),
        Token(".", False, 3, 4, False),
        Token("", True, 4, 5, False),  # a quote, which has no phonemes
        Token("bbb", False, 6, 9, True),
    ]
    assert spoken(cut(tokens, limit=5)) == ["aaa.", "bbb"]
    assert spoken(cut(tokens[2:])) == ["bbb"]
    assert spoken(cut([Token(")", False, 0, 1, False), *tokens[3:]])) == [")bbb"]


def test_a_mark_that_stands_alone_makes_no_pause_of_its_own() -> None:
    [piece] = cut(tokens_of("great job !"))
    assert piece.phonemes == "great job!"


def test_a_word_without_an_end_is_cut_where_it_must_be() -> None:
    pieces = cut(tokens_of("x" * 1000 + " end."), limit=100)
    assert "".join(spoken(pieces)).replace(" ", "") == "x" * 1000 + "end."
    assert max(len(p.phonemes) for p in pieces) <= 100
    assert sum(len(p.words) for p in pieces) == 2


def test_the_pause_tells_how_a_piece_ends() -> None:
    first, second = cut(tokens_of("aa bb cc dd"), limit=7)
    assert first.pause_s == second.pause_s == PAUSE_S[SPACE]


# -- clauses --------------------------------------------------------------------------------------


def clause(words: int, end: str) -> str:
    return " ".join(["abcdefghi"] * words) + end


def test_a_long_sentence_is_cut_at_its_clauses() -> None:
    text = " ".join([clause(8, ","), clause(8, ","), clause(8, ".")])
    assert spoken(cut(tokens_of(text))) == [clause(8, ","), clause(8, ","), clause(8, ".")]


def test_without_a_clause_it_is_cut_only_when_the_model_needs_it() -> None:
    whole = clause(22, ".")
    assert spoken(cut(tokens_of(whole))) == [whole], f"more than {LONG}, less than the limit"


def test_a_clause_near_an_end_is_no_place_to_cut() -> None:
    text = clause(2, ",") + " " + clause(18, ", ab.")
    assert spoken(cut(tokens_of(text))) == [text]


def test_what_is_one_word_on_the_screen_is_not_cut_at_a_comma_that_is_only_said() -> None:
    """ "5/4/24" is said "May fourth, twenty twenty four"."""
    date = [
        Token("dayday dayday", False, 16, 22, True),
        Token(",", True, 16, 22, False),
        Token("yearyear", True, 16, 22, True),
    ]
    before, behind = tokens_of("they came here on"), tokens_of("with all their friends.")
    moved = [replace(token, start=token.start + 23, end=token.end + 23) for token in behind]
    assert len(cut([*before, *date, *moved], first_words=2)) == 1
    comma = Token(",", True, 22, 23, False)
    first, _ = cut([*before, *date, comma, *moved], first_words=2)
    assert first.phonemes.endswith("dayday, yearyear,")
    assert [len(p.phonemes) for p in cut(date * 20, limit=100)] == [95] * 5, "where it must be"


def test_a_conjunction_is_a_place_too_and_sounds_as_if_it_went_on() -> None:
    text = clause(8, " and so it went but ") + clause(8, ".")
    tokens = tokens_of(text)
    assert len(cut(tokens)) == 1
    first, second = cut(tokens, clause_starts={text.index("but")})
    assert first.phonemes == clause(8, " and so it went,") and second.phonemes[:4] == "but "
    assert first.pause_s == PAUSE_S[JOINT]


def test_the_first_piece_may_end_early_and_only_the_first() -> None:
    text = " ".join([clause(3, ","), clause(3, ","), clause(3, ".")])
    tokens = tokens_of(text)
    assert len(cut(tokens)) == 1
    assert spoken(cut(tokens, first_words=3)) == [
        clause(3, ","),
        clause(3, ",") + " " + clause(3, "."),
    ]
    text = " ".join([clause(2, ","), clause(2, ","), clause(2, ","), clause(2, ".")])
    assert spoken(cut(tokens_of(text), first_words=3))[0] == clause(2, ",") + " " + clause(2, ",")


def test_the_first_piece_ends_early_only_where_both_sides_have_enough_words() -> None:
    text = clause(6, ", abc abc.")
    assert spoken(cut(tokens_of(text), first_words=3)) == [text]
    assert len(cut(tokens_of(text), first_words=2)) == 2
    short = "a b c d, " + clause(6, ".")
    assert len("a b c d, ") < LEAST_FIRST and len(cut(tokens_of(short), first_words=3)) == 1


def test_the_first_clause_of_all_that_are_long_is_not_early() -> None:
    text = clause(14, ",") + " " + clause(6, ".")
    assert cut(tokens_of(text), first_words=3) == cut(tokens_of(text))
    assert cut([], first_words=3) == ()


words = st.lists(st.text(alphabet="abc", min_size=1, max_size=30), max_size=60)
marks = st.lists(st.sampled_from(["", "", "", ",", ".", "!", "?)", "…", ";", " —"]), max_size=60)


@given(
    words,
    marks,
    st.integers(min_value=5, max_value=250),
    st.integers(0, 6),
    st.sets(st.integers(0, 300)),
)
def test_every_sound_is_spoken_once_in_order_within_the_limit(
    names: list[str], ends: list[str], limit: int, first_words: int, starts: set[int]
) -> None:
    text = " ".join(name + end for name, end in zip(names, ends, strict=False))
    tokens = tokens_of(text)
    pieces = cut(tokens, limit, first_words=first_words, clause_starts=starts)
    assert cut(tokens, limit, first_words=first_words, clause_starts=starts) == pieces
    assert all(0 < len(piece.phonemes) <= limit for piece in pieces)
    letters = "".join(c for phonemes in spoken(pieces) for c in phonemes if c.isalpha())
    assert letters == "".join(c for token in tokens for c in token.phonemes if c.isalpha())
    for piece in pieces:
        assert any(c.isalpha() for c in piece.phonemes)
        for word in piece.words:
            assert 0 <= word.first < word.past <= len(piece.phonemes)
            assert text[word.start : word.end].startswith(piece.phonemes[word.first : word.past])
