"""Markup to speech."""

from __future__ import annotations

import pytest

from services.segmenter.speakable import announcement, speakable


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Plain text stays.", "Plain text stays."),
        ("**Note:** keep it *dry*.", "Note: keep it dry."),
        ("***Very*** __good__ and _fine_.", "Very good and fine."),
        ("**a _b_ c**", "a b c"),
        ("~~old~~ new", "old new"),
        ("snake_case and 2 * 3", "snake_case and 2 * 3"),
        ("2*3*4 is 24, 5*4*3*2*1 is 120", "2*3*4 is 24, 5*4*3*2*1 is 120"),
        ("2**10 is 1024, and **2** it is", "2^10 is 1024, and 2 it is"),
        ("One<br>Two<br/>\nthree<br>four<br> five.", "One. Two. three four five."),
        ("<ul><li>apples</li><li>pears</li></ul>", "apples. pears"),
        ("<p>Hello <b>you</b>.</p><P>Bye</P>", "Hello you. Bye"),
        ("<td>a</td><td>b</td>, <s>One.</s><s>Two</s>.", "a b, One. Two."),
        ('<prosody rate="slow">Hi <break time="1s"/>there</prosody>', "Hi there"),
        (r"\*literal\*", "*literal*"),
        ("# Setup", "Setup"),
        ("## Setup ##", "Setup"),
        ("> quoted", "quoted"),
        ("- [x] Buy milk", "Buy milk"),
        ("* Eggs", "Eggs"),
        ("• Eggs", "Eggs"),
        ("1. **Plan.**", "1. Plan."),
        ("| Tea | 3.50 |", "Tea, 3.50"),
        ("|---|---|\n| a | b |\nc | d", "a, b. c | d"),
        ("See [the docs](https://x.com/a.b).", "See the docs."),
        ("See [the docs][1] and [more](<u> 'v').", "See the docs and more."),
        ("![a cat](cat.png) Look", "a cat Look"),
        ("See https://docs.example.com/v2/start.html?x=1.", "See docs.example.com."),
        ("Go to https://example.com!", "Go to example.com!"),
        ("<https://www.example.com/x>", "example.com"),
        ("<a@example.com>", "a@example.com"),
        ("It is true.[1][2]", "It is true."),
        ("It is true.[1](https://a.b/c)", "It is true."),
        ("It is true [[2]](https://a.b/c).", "It is true."),
        ("See [1984](https://a.b/c).", "See 1984."),
        ("It is true【4†source】.", "It is true."),
        ("Use `git add` first.", "Use git add first."),
        ("```python\nprint(1)\n```", "print(1)"),
        ("~~~python\nprint(1)\n~~~", "print(1)"),
        ("````md\n```\na b\n```\n````", "a b"),
        ('```\nx = "a"\ny\n```', 'x = "a". y'),
        ("```a b```", "a b"),
        ("```Hello there", "Hello there"),
        ("Hi <break time='1s'/>you.", "Hi you."),
        ('Say <sub alias="World Wide Web">WWW</sub>.', "Say World Wide Web."),
        ("A &amp; B", "A & B"),
        ("5 < 6", "5 < 6"),
        ("Great job! 🎉", "Great job!"),
        ("Well done 👏👏.", "Well done."),
        ("So 👨\u200d👩\u200d👧 nice", "So nice"),
        ("日本語😀です。", "日本語です。"),
        ("1️⃣ Wash it.", "1. Wash it."),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("zero\u200bwidth", "zerowidth"),
        ("Line one\n\nline two.\r\nThree", "Line one. line two. Three"),
        ("too   much\tspace", "too much space"),
        ("Vous venez ?", "Vous venez ?"),
    ],
)
def test_what_is_said(text: str, said: str) -> None:
    assert speakable(text) == said


def test_code_is_announced_in_the_language_of_the_session() -> None:
    assert announcement("de") == "Hier steht etwas Code."
    assert announcement("xx") == "Here is some code."


@pytest.mark.parametrize("piece", ["*a ", "_a ", "[", "|", "<", "<a ", "# ", "`", " ", "(", "a@"])
def test_hostile_markup_says_something_and_ends(piece: str) -> None:
    assert isinstance(speakable("**" + piece * 20_000 + "b"), str)
