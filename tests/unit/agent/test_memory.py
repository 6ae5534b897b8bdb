"""What a model is told of a session: bounded, alternating, and what was heard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from services.agent.memory import UNASKED, Memory, MemoryLimits, Message

ROOMY = MemoryLimits(messages=100, characters=10_000)


def told(memory: Memory, turn: str) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in memory.messages(turn)]


def talked(*turns: tuple[str, str, str], limits: MemoryLimits = ROOMY) -> Memory:
    """A memory of (turn, prompt, reply)."""
    memory = Memory(limits)
    for turn, prompt, reply in turns:
        memory.ask(turn, prompt)
        memory.write(turn, reply)
    return memory


def started(turn: str, n: int, end: int) -> m.SegmentStarted:
    return m.SegmentStarted(turn=turn, n=n, text="", start=0, end=end)


def done(turn: str, n: int) -> m.SegmentDone:
    return m.SegmentDone(turn=turn, n=n, samples=1)


def receipt(*turns: str, already_done: bool = False, **heard: object) -> m.TurnCancelled:
    return m.TurnCancelled(
        turn=turns[0],
        sent={"segments": 0, "n": 0, "samples": 0},
        already_done=already_done,
        heard=heard or None,
        turns=list(turns) if len(turns) > 1 else None,
    )


# -- what is told ---------------------------------------------------------------------------------


def test_a_prompt_comes_last_after_what_was_said() -> None:
    memory = talked(("t1", "Who?", "Me."), ("t2", "Why?", "Because."))
    memory.ask("t3", "When?")
    assert told(memory, "t3") == [
        ("user", "Who?"),
        ("assistant", "Me."),
        ("user", "Why?"),
        ("assistant", "Because."),
        ("user", "When?"),
    ]


def test_pieces_are_put_together() -> None:
    memory = talked(("t1", "Who?", ""))
    for piece in ("It", " is", " me."):
        memory.write("t1", piece)
    memory.ask("t2", "Oh?")
    assert told(memory, "t2")[1] == ("assistant", "It is me.")


def test_what_comes_later_is_not_told_to_an_earlier_turn() -> None:
    memory = talked(("t1", "Who?", ""), ("t2", "Why?", ""))
    assert told(memory, "t1") == [("user", "Who?")]


def test_an_agent_that_speaks_first_was_asked_by_the_beginning() -> None:
    memory = talked(("t1", "", "Hello, what can I do?"))
    memory.ask("t2", "Sing.")
    assert told(memory, "t2") == [
        ("user", UNASKED),
        ("assistant", "Hello, what can I do?"),
        ("user", "Sing."),
    ]


def test_sides_alternate_whatever_was_said() -> None:
    memory = talked(("t1", "One?", ""), ("t2", "Two?", "Two."), ("t3", "", "And more."))
    memory.ask("t4", "Three?")
    assert told(memory, "t4") == [
        ("user", "One?\n\nTwo?"),
        ("assistant", "Two.\n\nAnd more."),
        ("user", "Three?"),
    ]


def test_a_turn_of_the_same_name_replaces_it() -> None:
    memory = talked(("t1", "Old?", "Old."), ("t1", "New?", ""))
    assert told(memory, "t1") == [("user", "New?")]


# -- bounds ---------------------------------------------------------------------------------------


def test_the_oldest_go_first() -> None:
    memory = talked(*[(f"t{n}", f"q{n}", f"a{n}") for n in range(9)], limits=MemoryLimits(4, 1000))
    memory.ask("t", "q")
    assert told(memory, "t") == [("user", "q8"), ("assistant", "a8"), ("user", "q")]


def test_characters_are_counted() -> None:
    memory = talked(("t1", "a" * 50, "b" * 50), ("t2", "c" * 40, ""), limits=MemoryLimits(9, 100))
    assert told(memory, "t2") == [("user", "c" * 40)]
    memory.write("t1", "of a turn that is forgotten")
    assert told(memory, "t2") == [("user", "c" * 40)]


def test_one_reply_without_end_is_cut() -> None:
    memory = talked(("t1", "", "x" * 90), limits=MemoryLimits(9, 100))
    memory.write("t1", "y" * 90)
    memory.ask("t2", "?")
    assert told(memory, "t2") == [("user", "?")]
    assert memory.messages("t1") == (Message("user", "?"),)


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("awcd"), st.text(max_size=30))),
    st.integers(1, 6),
    st.integers(1, 60),
)
def test_it_never_holds_more_than_it_may(
    steps: list[tuple[str, str, str]], messages: int, characters: int
) -> None:
    memory = Memory(MemoryLimits(messages, characters))
    for turn, what, text in steps:
        if what == "a":
            memory.ask(turn, text[:characters])
        elif what == "w":
            memory.write(turn, text)
        elif what == "c":
            memory.take(receipt(turn, turn=turn, text=text, samples=1))
        else:
            memory.unsaid(turn)
        said = memory.messages("none")
        roles = [message.role for message in said]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"] * (len(roles) % 2)
        # The newest turn alone may be larger: it is what the model is asked.
        assert len(said) <= max(messages, 2) + 1
        extra = len(UNASKED) + 2 * len(said) * 2
        assert sum(len(message.text) for message in said) <= 2 * characters + extra


# -- what was heard -------------------------------------------------------------------------------


def test_after_a_barge_in_only_what_was_heard_is_remembered() -> None:
    memory = talked(("t1", "Tell me all.", "First this. Then that. Then more."))
    memory.take(receipt("t1", turn="t1", text="First this. Then", samples=100))
    memory.ask("t2", "Stop. Why?")
    assert told(memory, "t2")[1] == ("assistant", "First this. Then")


def test_turns_after_the_one_that_was_heard_were_not() -> None:
    memory = talked(("t1", "a?", "A."), ("t2", "b?", "B. Bee."), ("t3", "c?", "C."))
    memory.take(receipt("t1", "t2", "t3", turn="t2", text="B.", samples=9))
    memory.ask("t4", "d?")
    assert told(memory, "t4") == [
        ("user", "a?"),
        ("assistant", "A."),
        ("user", "b?"),
        ("assistant", "B."),
        ("user", "c?\n\nd?"),
    ]


def test_a_turn_that_was_out_already_may_not_have_been_heard_out() -> None:
    memory = talked(("t1", "a?", "A. And so on."), ("t2", "b?", "B."))
    memory.take(receipt("t2", turn="t1", text="A.", samples=9))
    memory.ask("t3", "c?")
    assert told(memory, "t3") == [("user", "a?"), ("assistant", "A."), ("user", "b?\n\nc?")]


def test_without_a_word_of_what_was_heard_what_was_sent_counts() -> None:
    memory = talked(("t1", "a?", "One. Two. Three."))
    for event in (started("t1", 7, 5), done("t1", 7), started("t1", 8, 10)):
        memory.take(event)
    memory.take(receipt("t1", "unknown"))
    memory.ask("t2", "b?")
    assert told(memory, "t2")[1] == ("assistant", "One. ")


def test_a_cancel_that_came_too_late_takes_nothing_back() -> None:
    memory = talked(("t1", "a?", "One."))
    memory.take(receipt("t1", already_done=True))
    memory.ask("t2", "b?")
    assert told(memory, "t2")[1] == ("assistant", "One.")


def test_what_was_never_published_is_not_remembered() -> None:
    memory = talked(("t1", "a?", "One."))
    memory.unsaid("t1")
    memory.unsaid("t9")
    memory.ask("t2", "b?")
    assert told(memory, "t2") == [("user", "a?\n\nb?")]


def test_a_closed_session_is_forgotten() -> None:
    memory = talked(("t1", "a?", "One."))
    memory.take(m.Closed(reason="closed"))
    memory.ask("t2", "b?")
    assert told(memory, "t2") == [("user", "b?")]


def test_segments_without_an_end_are_not_kept_for_ever() -> None:
    memory = talked(("t1", "a?", "x" * 100))
    for n in range(40):
        memory.take(started("t1", n, n + 1))
    for event in (done("t1", 0), done("t1", 39), done("t9", 3), started("t9", 3, 1)):
        memory.take(event)
    memory.take(m.Gap(first="1-0"))
    memory.take(receipt("t1"))
    memory.ask("t2", "b?")
    assert told(memory, "t2")[1] == ("assistant", "x" * 40)
