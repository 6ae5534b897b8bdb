"""Whatever the order of two publishers' entries, and however often they come: each turn once."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from hypothesis import given
from hypothesis import strategies as st

from firstword import messages as m
from tests.unit.segmenter.talk import Talk, cancels, ends, segments, to_gateway

WORDS = ("It", "is", "so.", "Yes!", "Why?", "Mr.", "3.5", "然り。", "Grüße,", "end.", "no")
FLUSH = "\x00flush"


@dataclass(frozen=True)
class Script:
    """One turn of a publisher: its text cut in pieces, and its flushes."""

    turn: str
    pieces: tuple[str, ...]
    numbered: bool

    @property
    def text(self) -> str:
        return "".join(piece for piece in self.pieces if piece != FLUSH)

    def messages(self) -> list[m.Ingress]:
        out: list[m.Ingress] = []
        for seq, piece in enumerate(self.pieces):
            number = seq if self.numbered else None
            if piece == FLUSH:
                out.append(m.Flush(session="demo", turn=self.turn, seq=number))
            else:
                out.append(m.Text(session="demo", turn=self.turn, text=piece, seq=number))
        number = len(self.pieces) if self.numbered else None
        return [*out, m.End(session="demo", turn=self.turn, seq=number)]


@st.composite
def scripts(draw: st.DrawFn, turn: str) -> Script:
    """Flushes stand between words: a mark alone says nothing, and nothing is spoken for it."""
    pieces: list[str] = []
    for number in range(draw(st.integers(1, 2))):
        if number:
            pieces.append(FLUSH)
        text = "".join(word + " " for word in draw(st.lists(st.sampled_from(WORDS), max_size=5)))
        cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
        pieces += [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return Script(turn, tuple(pieces), draw(st.booleans()))


@st.composite
def publishers(draw: st.DrawFn) -> list[list[Script]]:
    """Two publishers, each with its turns one after the other."""
    return [
        [draw(scripts(f"{name}{number}")) for number in range(draw(st.integers(1, 2)))]
        for name in ("a", "b")
    ]


def interleaved(draw: st.DrawFn, queues: list[list[m.Ingress]]) -> list[m.Ingress]:
    """The publishers' messages in one order, each publisher's own kept."""
    out: list[m.Ingress] = []
    queues = [list(queue) for queue in queues]
    while any(queues):
        queue = draw(st.sampled_from([queue for queue in queues if queue]))
        out.append(queue.pop(0))
    return out


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text)


def check_texts(talk: Talk, turns: list[Script]) -> None:
    """Each turn spoken in one go, whole, and ended once."""
    found = segments(talk.outputs)
    for script in turns:
        said = "".join(segment.text for segment in found if segment.turn == script.turn)
        assert squeezed(said) == squeezed(script.text)
    order = [turn for turn, _segments in groupby(found, key=lambda segment: segment.turn)]
    assert len(order) == len(set(order))
    ended = sorted(turn for turn, _count, _reason in ends(talk.outputs))
    assert ended == sorted(script.turn for script in turns)


def check(talk: Talk, turns: list[Script]) -> None:
    """The texts, and numbers without a hole; nothing is left."""
    check_texts(talk, turns)
    found = segments(talk.outputs)
    assert [segment.n for segment in found] == list(range(1, len(found) + 1))
    for turn, count, _reason in ends(talk.outputs):
        of_turn = [segment for segment in found if segment.turn == turn]
        assert len(of_turn) == count
        assert [segment.first for segment in of_turn] == [at == 0 for at in range(count)]
        assert not any(segment.last for segment in of_turn[:-1])
        assert all(a.end <= b.start for a, b in pairwise(of_turn))
    assert not talk.session.busy
    assert talk.session.timer() is None


@given(publishers(), st.data())
def test_any_interleaving_of_two_publishers(turns: list[list[Script]], data: st.DataObject) -> None:
    queues = [[msg for script in scripts for msg in script.messages()] for scripts in turns]
    talk = Talk()
    for message in data.draw(st.composite(interleaved)(queues)):
        talk.put(message)
    check(talk, [script for scripts in turns for script in scripts])


@given(publishers(), st.data())
def test_a_successor_at_every_step_changes_nothing(
    turns: list[list[Script]], data: st.DataObject
) -> None:
    queues = [[msg for script in scripts for msg in script.messages()] for scripts in turns]
    one, other = Talk(), Talk()
    for message in data.draw(st.composite(interleaved)(queues)):
        one.put(message)
        other.succeed()
        other.put(message)
        assert other.outputs == one.outputs
        assert other.session.timer() == one.session.timer()
    other.succeed()
    assert other.session.snapshot() == one.session.snapshot()


@given(scripts("a"), scripts("b"), st.data())
def test_repeats_and_redeliveries_change_nothing(
    first: Script, second: Script, data: st.DataObject
) -> None:
    """Numbered pieces may come again at any time."""
    first, second = (Script(s.turn, s.pieces, numbered=True) for s in (first, second))
    talk = Talk()
    done: list[m.Ingress] = []
    for message in data.draw(st.composite(interleaved)([first.messages(), second.messages()])):
        talk.put(message)
        done.append(message)
        for again in data.draw(st.lists(st.sampled_from(done), max_size=3)):
            assert to_gateway(talk.put(again)) == []
    check(talk, [first, second])


@given(scripts("a"), scripts("b"), st.data())
def test_pieces_out_of_order_are_put_in_order(
    first: Script, second: Script, data: st.DataObject
) -> None:
    first, second = (Script(s.turn, s.pieces, numbered=True) for s in (first, second))
    talk = Talk()
    for message in data.draw(st.permutations([*first.messages(), *second.messages()])):
        talk.put(message)
        if data.draw(st.booleans()):
            talk.succeed()
    check(talk, [first, second])


@given(publishers(), st.data())
def test_copies_through_the_door_may_come_again_from_any_point(
    turns: list[list[Script]], data: st.DataObject
) -> None:
    queues = [[msg for script in scripts for msg in script.messages()] for scripts in turns]
    entries = data.draw(st.composite(interleaved)(queues))
    copies = [replace(message, src=f"{number}-1") for number, message in enumerate(entries)]
    talk = Talk()
    at = 0
    while at < len(copies):
        upto = data.draw(st.integers(at + 1, len(copies)))
        for message in copies[at:upto]:
            talk.put(message)
        for message in copies[data.draw(st.integers(0, upto)) : upto]:
            assert to_gateway(talk.put(message)) == []
        at = upto
    check(talk, [script for scripts in turns for script in scripts])


@given(publishers(), st.data())
def test_a_cancel_at_any_point_stops_that_turn_only(
    turns: list[list[Script]], data: st.DataObject
) -> None:
    queues = [[msg for script in scripts for msg in script.messages()] for scripts in turns]
    entries = data.draw(st.composite(interleaved)(queues))
    everyone = [script for scripts in turns for script in scripts]
    victim = data.draw(st.sampled_from(everyone))
    at = data.draw(st.integers(0, len(entries)))
    talk = Talk()
    for message in entries[:at]:
        talk.put(message)
    before = len(segments(talk.outputs))
    assert len(cancels(talk.cancel(victim.turn))) == 1
    for message in entries[at:]:
        talk.put(message)
    after = segments(talk.outputs)[before:]
    assert all(segment.turn != victim.turn for segment in after)
    ended = [turn for turn, _count, _reason in ends(talk.outputs)]
    assert ended.count(victim.turn) <= 1
    talk.outputs = [
        output
        for output in talk.outputs
        if getattr(getattr(output, "message", None), "turn", None) != victim.turn
    ]
    check_texts(talk, [script for script in everyone if script is not victim])
