"""The segmenter of one turn: what comes out, and when."""

from __future__ import annotations

import pytest

from services.segmenter.core import Revoke, Segment, Segmenter, SegmenterOptions, Tentative

from .streams import segments_of, spoken_of, texts_of


def segmenter(**options: object) -> Segmenter:
    return Segmenter(SegmenterOptions(**{"lang": "en", **options}))  # type: ignore[arg-type]


def test_a_sentence_leaves_one_token_after_its_mark() -> None:
    turn = segmenter()
    for token in ("It", " is", " done"):
        assert turn.push(token, 0.0) == []
    assert turn.push(".", 0.0) == [Tentative("It is done.", 0, 11)]
    assert turn.push(" Next", 0.0) == [Segment("It is done.", "It is done.", 0, 11)]
    assert turn.flush(0.0) == [Segment("Next", "Next", 12, 16)]


def test_in_eager_mode_it_leaves_at_the_mark() -> None:
    turn = segmenter(mode="eager")
    turn.push("It is", 0.0)
    turn.push(" done", 0.0)
    assert turn.push(".", 0.0) == [Segment("It is done.", "It is done.", 0, 11)]


@pytest.mark.parametrize(
    "tokens",
    [
        (" at 5", " p.m", "."),  # an abbreviation
        (" costs", " 3", "."),  # a decimal point, perhaps
        (' "so he', " went", "."),  # a quote is open
        (" **Very", " good", "."),  # emphasis is open
        (" he", " is", "."),  # no sentence ends so
        ("g", "o", "."),  # letter by letter
        (" well", "…"),  # the next word decides
        (" use", " Yahoo", "!"),  # part of a name
        ("— Come", " here", "?"),  # a speech tag may follow
        (" wait", "..."),  # not a single mark
        (" he left .", ""),  # a dot apart
        (" take", " 5kg", "."),  # digits in the word
    ],
)
def test_eager_mode_waits_where_the_mark_alone_says_little(tokens: tuple[str, ...]) -> None:
    turn = segmenter(mode="eager")
    events = [event for token in tokens for event in turn.push(token, 0.0)]
    assert not any(isinstance(event, Segment) for event in events)


def test_eager_mode_ends_at_a_mark_that_needs_no_space() -> None:
    turn = segmenter(lang="zh", mode="eager")
    turn.push("好", 0.0)
    assert [type(event) for event in turn.push("。", 0.0)] == [Segment]


def test_a_tentative_segment_is_revoked_when_the_sentence_goes_on() -> None:
    turn = segmenter()
    turn.push("Go to example", 0.0)
    assert turn.push(".", 0.0) == [Tentative("Go to example.", 0, 14)]
    assert turn.push("com", 0.0) == [Revoke()]
    assert texts_of(["Go to example", ".", "com", " now."]) == ["Go to example.com now."]


def test_a_tentative_segment_is_announced_again_when_it_would_say_something_else() -> None:
    turn = segmenter()
    turn.push("Stop right there", 0.0)
    assert turn.push("!", 0.0) == [Tentative("Stop right there!", 0, 17)]
    assert turn.push("!", 0.0) == [Revoke(), Tentative("Stop right there!!", 0, 18)]
    assert turn.push("*", 0.0) == []  # nothing that is said
    assert turn.push(" Now", 0.0)[0] == Segment("Stop right there!!*", "Stop right there!!", 0, 19)


def test_nothing_is_announced_inside_a_quote_before_it_may_close() -> None:
    turn = segmenter()
    assert turn.push('He said "no', 0.0) == []
    assert turn.push(".", 0.0) == []
    assert turn.push('"', 0.0) == [Tentative('He said "no."', 0, 13)]


def test_a_very_long_sentence_is_not_announced() -> None:
    turn = segmenter()
    turn.push("so " * 400, 0.0)
    assert turn.push("far.", 0.0) == []
    assert turn.timer() is not None  # but it is committed when the tokens stall


def test_a_stall_commits_what_is_tentative() -> None:
    turn = segmenter()
    turn.push("Let me look that up", 1.0)
    turn.push(".", 1.0)
    assert turn.timer() == 1.25
    assert turn.idle(1.2) == []
    assert turn.idle(1.25) == [Segment("Let me look that up.", "Let me look that up.", 0, 20)]
    assert turn.timer() is None
    assert turn.push(" Found it.", 9.0) == [Tentative("Found it.", 21, 30)]


def test_a_stall_waits_longer_where_the_sentence_may_well_go_on() -> None:
    turn = segmenter()
    turn.push("They live in the U.S.", 1.0)
    assert turn.timer() == 2.0
    assert [type(event) for event in turn.idle(2.0)] == [Segment]


@pytest.mark.parametrize("text", ["Ask Dr.", "1.", "J.", "..."])
def test_a_stall_never_ends_a_sentence_that_cannot_end_there(text: str) -> None:
    turn = segmenter()
    turn.push(text, 1.0)
    assert turn.timer() is None


def test_without_a_stall_time_nothing_waits() -> None:
    turn = segmenter(stall=0.0)
    turn.push("It is done.", 1.0)
    assert turn.timer() is None


def test_what_follows_a_stalled_mark_is_read_on() -> None:
    turn = segmenter()
    turn.push("It is done. ", 1.0)
    assert [type(event) for event in turn.idle(2.0)] == [Segment]
    assert turn.holding is False
    turn.push("Go on", 3.0)
    assert [event.start for event in turn.flush(3.0) if isinstance(event, Segment)] == [12]


def test_max_wait_cuts_at_the_last_clause() -> None:
    turn = segmenter(max_wait=2.0)
    turn.push("I went there, and then", 1.0)
    assert turn.timer() == 3.0
    assert turn.idle(3.0) == [Segment("I went there,", "I went there,", 0, 13)]
    assert turn.timer() == 5.0
    assert turn.idle(5.0) == [Segment("and", "and", 14, 17)]  # "then" may go on
    assert turn.idle(7.0) == []
    assert turn.flush(8.0) == [Segment("then", "then", 18, 22)]
    assert turn.timer() is None


def test_max_wait_takes_all_of_a_text_without_spaces() -> None:
    turn = segmenter(lang="zh", max_wait=2.0)
    turn.push("我们去公园", 0.0)
    assert turn.idle(2.0) == [Segment("我们去公园", "我们去公园", 0, 5)]


def test_max_wait_leaves_white_space_alone() -> None:
    turn = segmenter(max_wait=2.0)
    turn.push("  ", 0.0)
    assert turn.timer() is None
    assert turn.idle(9.0) == []


def test_the_tail_leaves_at_the_flush_and_the_turn_may_go_on() -> None:
    turn = segmenter()
    turn.push("And so", 0.0)
    assert turn.flush(0.0) == [Segment("And so", "And so", 0, 6)]
    turn.push(" on", 0.0)
    assert turn.flush(0.0) == [Segment("on", "on", 7, 9)]
    assert turn.flush(0.0) == []


def test_an_unspeakable_tail_yields_nothing() -> None:
    assert texts_of(["Bye. ", "---", " 🎉"]) == ["Bye."]
    assert texts_of(["", " \n", "...", "👍"]) == []


def test_unspeakable_lines_go_with_what_follows() -> None:
    assert texts_of(["One.\n\n", "---\n\n", "Two."]) == ["One.", "---\n\nTwo."]
    assert spoken_of(["One.\n\n", "---\n\n", "Two."]) == ["One.", "Two."]


def test_a_long_unspeakable_stretch_is_dropped() -> None:
    (segment,) = segments_of(["-\n" * 600, "Two."])
    assert segment.text.endswith("Two.")
    assert len(segment.text) < 1_200
    assert segment.end == 1_204


def test_short_segments_are_merged_forward_but_not_the_first() -> None:
    pieces = ["Hi. How are you? Fine. And what about your brother?"]
    assert texts_of(pieces, min_chars=15) == [
        "Hi.",
        "How are you? Fine.",
        "And what about your brother?",
    ]
    assert texts_of(pieces, min_chars=15, merge_first=True)[0] == "Hi. How are you?"


def test_a_short_segment_of_another_script_says_as_much_as_a_long_one() -> None:
    assert texts_of(["好。我们走吧。再见。"], lang="zh", min_chars=12) == [
        "好。",
        "我们走吧。",
        "再见。",
    ]


def test_nothing_is_announced_that_would_be_merged() -> None:
    turn = segmenter(min_chars=20)
    turn.push("Good morning. Fine", 0.0)
    assert turn.push(".", 0.0) == []


def test_merging_keeps_to_the_limit() -> None:
    assert texts_of(["Well. Yes. It is twenty long."], min_chars=10, max_chars=20) == [
        "Well.",
        "Yes.",
        "It is twenty long.",
    ]


@pytest.mark.parametrize(
    ("text", "limit", "wanted"),
    [
        ("ask Dr. Wu now", 7, ["ask Dr.", "Wu now"]),
        ("I came, I saw, I went home", 16, ["I came, I saw,", "I went home"]),
        ("one two three four", 9, ["one two", "three", "four"]),
        ("abcdefghij", 4, ["abcd", "efgh", "ij"]),
        ("ab 1234567", 6, ["ab", "123456", "7"]),
        ("abc1234567", 6, ["abc", "123456", "7"]),
        ("in 1 250 000 days", 9, ["in", "1 250 000", "days"]),
        ("pay 1, 2, 3, 4 of it", 12, ["pay 1, 2, 3,", "4 of it"]),
        ("aaaa👨\u200d👩\u200d👧b", 6, ["aaaa", "👨\u200d👩\u200d👧b"]),
        ("aaae\u0301e\u0301", 4, ["aaa", "e\u0301e\u0301"]),
        ("a🇩🇪🇫🇷b", 4, ["a🇩🇪", "🇫🇷b"]),
        ("ask Dr. Alexandra", 9, ["ask Dr.", "Alexandra"]),
        ("in the U.S. Senat", 12, ["in the U.S.", "Senat"]),
        ("one `two three four`", 10, ["one `two", "three", "four`"]),
    ],
)
def test_a_long_text_is_cut_at_a_clause_a_space_or_hard(
    text: str, limit: int, wanted: list[str]
) -> None:
    assert texts_of([text], max_chars=limit) == wanted
    assert texts_of(list(text), max_chars=limit) == wanted


@pytest.mark.parametrize(
    ("text", "words", "wanted"),
    [
        ("Sure, I can help.", 1, ["Sure,", "I can help."]),
        ("Sure, I can help.", 2, ["Sure, I can help."]),
        ("It is 1,250 or so, I think.", 2, ["It is 1,250 or so,", "I think."]),
        ("Choose 1, 2, or 3.", 1, ["Choose 1, 2,", "or 3."]),
        ("At 5:30, we go.", 1, ["At 5:30,", "we go."]),
        ("Well — yes, it is.", 1, ["Well —", "yes, it is."]),
        ("One, two. Three, four.", 1, ["One,", "two.", "Three, four."]),
        ('"Well," he said.', 1, ['"Well,"', "he said."]),
        ("And that,", 1, ["And that,"]),
        ("a,b c", 1, ["a,b c"]),
        ("so very much longer than sixty-four characters in one single clause, yes", 2, None),
    ],
)
def test_the_first_segment_may_be_a_clause(text: str, words: int, wanted: list[str] | None) -> None:
    if wanted is None:
        wanted = [text[:-4].rstrip(), "yes"]
    assert texts_of([text], first_clause=words) == wanted
    assert texts_of(list(text), first_clause=words) == wanted


def test_a_clause_counts_words_of_scripts_without_spaces() -> None:
    assert texts_of(["好的，我来帮您。"], lang="zh", first_clause=1) == ["好的，", "我来帮您。"]


CODE = "Run this:\n```sh\nls. Now\n\nrm x\n```\nDone."


def test_a_fence_is_one_segment() -> None:
    assert texts_of([CODE]) == ["Run this:", "```sh\nls. Now\n\nrm x\n```", "Done."]
    assert texts_of(list(CODE)) == texts_of([CODE])


def test_a_fence_can_be_announced_or_skipped() -> None:
    assert spoken_of([CODE]) == ["Run this:", "ls. Now. rm x", "Done."]
    assert spoken_of([CODE], skip_code="announce") == ["Run this:", "Here is some code.", "Done."]
    assert spoken_of([CODE], skip_code="skip") == ["Run this:", "Done."]


def test_a_fence_that_is_too_long_is_announced_once() -> None:
    said = spoken_of([CODE], skip_code="announce", max_chars=14)
    assert said == ["Run this:", "Here is some code.", "Done."]


@pytest.mark.parametrize(
    "fence",
    [
        "~~~\na. B\n\nC. D\n~~~",
        "````md\n```\na. B\n```\nC. D\n````",  # a shorter run does not close it
        '```py\nx = "```"\nY. Z\n```',  # nor does one inside a line
        "```\r\na. B\r\n```",
        "```\na. B\n`````",
        "> ```\n> a. B\n> ```",
        "```a. B```",  # on one line
        "```\n```",
    ],
)
def test_a_fence_ends_with_a_run_like_its_first(fence: str) -> None:
    text = f"Look:\n{fence}\nSo. Done."
    wanted = ["Look:", fence, "So.", "Done."]
    if not any(c.isalpha() for c in fence):
        wanted[1:3] = [f"{fence}\nSo."]  # nothing to say: it goes with what follows
    assert texts_of([text]) == wanted
    assert texts_of(list(text)) == wanted


def test_tildes_inside_a_line_open_nothing() -> None:
    text = "~~Old. Text~~ is ~5 km. See ~~~. End."
    assert texts_of([text]) == texts_of(list(text))
    assert len(texts_of([text])) > 2


def test_a_budget_is_spent_once_when_the_text_is_cut() -> None:
    text = "Say `a b c d e f g h i j k l! 5 m. N o p q. R s t u v."
    assert texts_of([text], max_chars=9) == texts_of(list(text), max_chars=9)


def test_an_open_fence_leaves_at_the_flush() -> None:
    assert texts_of(["```\nx. Y"]) == ["```\nx. Y"]


def test_a_backtick_that_never_closes_protects_only_so_much() -> None:
    filler = "a b " * 70
    text = f"The ` sign {filler}is odd. Yes."
    assert len(texts_of([text])) == 2
    assert texts_of(list(text)) == texts_of([text])
    assert texts_of(["The ` sign. Here\nis odd."]) == ["The ` sign. Here", "is odd."]


def test_positions_count_the_characters_of_the_turn() -> None:
    text = "  Hi there. \n\n 好。Next 😀 one."
    segments = segments_of(list(text), lang="zh")
    assert [text[s.start : s.end] for s in segments] == [s.text for s in segments]
    assert len(segments) == 3


def test_a_character_that_is_cut_in_two_is_held() -> None:
    turn = segmenter()
    turn.push("Caf\udcc3", 0.0)
    assert turn.holding
    turn.push("\udca9 \ud83d", 0.0)
    turn.push("\ude00.", 0.0)
    assert turn.flush(0.0) == [
        Segment("Café 😀.", "Café.", 0, 7),
    ]


def test_half_a_character_at_the_end_becomes_a_replacement() -> None:
    assert texts_of(["Caf\udcc3"]) == ["Caf\ufffd"]


def test_the_language_is_found_if_none_is_given() -> None:
    assert texts_of(["Er wohnt im 5. Stock. Das ist gut und nicht zu hoch."], lang="auto") == [
        "Er wohnt im 5. Stock.",
        "Das ist gut und nicht zu hoch.",
    ]
    assert texts_of(["Він живе у м. Львів. Це близько."], lang="auto") == [
        "Він живе у м. Львів.",
        "Це близько.",
    ]
    assert texts_of(["これは本です。「はい。」と言った。"], lang="auto") == [
        "これは本です。",
        "「はい。」と言った。",
    ]


@pytest.mark.parametrize(
    "sentences",
    [
        ["Il Dott. Bianchi visita oggi.", "Prenota."],  # as French as Italian so far
        ["Vedi pagg. 3-5 e basta.", "È breve."],
        ["Veja a pág. 30 e o cap. 4.", "São curtos."],
        ["Es gibt Tee o. Ä. zum Trinken.", "Nimm dir was."],
        ["Najbliższy odjeżdża o godz. 14.05 z peronu 3.", "Bilet jest tani."],
        ["I like it.", "Max does not."],
        ["No.", "It is an ex.", "Bob knows."],
    ],
)
def test_the_first_sentence_may_tell_its_language_by_an_abbreviation(sentences: list[str]) -> None:
    assert texts_of([" ".join(sentences)], lang="auto") == sentences


def test_a_language_without_a_table_gets_what_all_languages_share() -> None:
    assert texts_of(["Tere. Kuidas läheb? Hästi."], lang="et-EE") == [
        "Tere.",
        "Kuidas läheb?",
        "Hästi.",
    ]


def test_a_snapshot_is_small_and_plain() -> None:
    turn = segmenter(lang="auto")
    turn.push("1. He said `x and \udcc3", 0.0)
    state = turn.snapshot()
    again = Segmenter.restore(SegmenterOptions(), state)
    assert again.snapshot() == state
    assert len(repr(state)) < 1_000


def test_a_snapshot_from_before_a_language_was_added_goes_on() -> None:
    turn = segmenter(lang="auto")
    turn.push("Das ist gut. ", 0.0)
    state = turn.snapshot()
    del state["scanner"]["votes"][5:]
    again = Segmenter.restore(SegmenterOptions(lang="auto"), state)
    events = again.push("Er wohnt hier. ", 0.0) + again.flush(0.0)
    assert [event.text for event in events if isinstance(event, Segment)] == [
        "Das ist gut.",
        "Er wohnt hier.",
    ]
