"""The classic English rules (the "golden rules" of sentence boundary detection), in own words.

47 of the 48 hold. The one that does not wants a full stop before a spaced ellipsis to end the
sentence and the dots to open the next (`It was weak. . . . The next one`): here the dots, which
nobody can speak, stay with the sentence before.
"""

from __future__ import annotations

import pytest

from .streams import texts_of

RULES = [
    ("a full stop", "It is cold. | My coat is red."),
    ("a question mark", "What is that? | My coat is red."),
    ("an exclamation mark", "There he is! | I saw him."),
    ("one capital as an initial", "I am called Ada F. Marsh."),
    ("one small letter before a number", "Please open it at p. 55."),
    ("a two-letter abbreviation inside", "Were Ruth and co. at the fair?"),
    ("a company inside", "They signed with Hill, Rowe & Co. at noon."),
    ("a two-letter abbreviation at the end", "Let's call Ruth and co. | They should come."),
    ("a company at the end", "They signed with Hill, Rowe & Co. | It ended yesterday."),
    ("an abbreviation before a name", "You can see Mt. Hood from here."),
    ("one before and one after a name", "St. Anne's Hall is on 5th st. near the lamp."),
    ("a possessive abbreviation", "This is RFK Jr.'s pen."),
    ("an acronym inside", "I saw the U.S.A. last year."),
    ("an acronym at the end", "I work in the E.U. | How about you?"),
    ("U.S. at the end", "I work in the U.S. | How about you?"),
    ("U.S. before a name", "I write for the U.S. Government in Ohio."),
    ("U.S. before a small letter", "I have been in the U.S. for 20 years."),
    (
        "a.m. and p.m. both ways",
        "At 5 a.m. Mr. Rowe went to the mill. | He left the mill at 6 P.M. | "
        "Mr. Rowe then went to the shop.",
    ),
    ("a number inside", "She has $100.00 in her purse."),
    ("a number at the end", "She has $100.00. | It is in her purse."),
    ("a sentence in brackets inside", "He sings (He was a baker for 5 years before.) at the inn."),
    ("a mail address", "Her address is Ada.Marsh@example.com. | I wrote to her."),
    ("a web address", "It is at https://www.example.50.com/new-page/nice_text.html. | Read it."),
    ("single quotes inside", "She told him, 'This is fine.' she said."),
    ("double quotes inside", 'She told him, "This is fine." she said.'),
    ("double quotes at the end", 'She told him, "This is fine." | She held it out to him.'),
    ("two exclamation marks", "Hey!! | It has been long."),
    ("two question marks", "Hey?? | Who is it?"),
    ("exclamation and question mark", "Hey!? | Is it you?"),
    ("question and exclamation mark", "Hey?! | Is it you?"),
    ("list: dot, bracket, no marks", "1.) One egg | 2.) Two eggs"),
    ("list: dot, bracket, marks", "1.) One egg. | 2.) Two eggs."),
    ("list: bracket, no marks", "1) One egg | 2) Two eggs"),
    ("list: bracket, marks", "1) One egg. | 2) Two eggs."),
    ("list: dot, no marks", "1. One egg | 2. Two eggs"),
    ("list: dot, marks", "1. One egg. | 2. Two eggs."),
    ("list: bullets with numbers", "• 9. Nine eggs | • 10. Ten eggs"),
    ("list: hyphen bullets with numbers", "⁃9. Nine eggs | ⁃10. Ten eggs"),
    ("list: letters", "a. One egg | b. Two eggs | c. Three more eggs"),
    ("coordinates", "It lies at N°. 1026.253.553. | There is the gold."),
    ("a name with an exclamation mark", "She is with Yahoo! in the sales team."),
    ("the word I and an initial", "We fit well, you and I. | Did you see Alan I. Frost today?"),
    ("an ellipsis before a closing quote", 'He writes that "the rules will look less odd. . . ."'),
    ("an ellipsis in brackets", '"Marsh [...] used a set of stairs [...]" (Rowe 55).'),
    (
        "a spaced ellipsis with a full stop",
        "Show the gap with dots and a full stop . . . . | Go on.",
    ),
    ("four dots", "I never said so.... | She left the inn."),
    (
        "three dots are no end",
        "I was not ... well, what I mean...look . . . what I say, the thing is . . . I did not.",
    ),
    (
        "no space between sentences",
        "Hey there.|Today is Monday.|Mr. Rowe went out and paid 1,000.|That is a lot.",
    ),
]


@pytest.mark.parametrize(("name", "marked"), RULES, ids=[name for name, _ in RULES])
def test_rule(name: str, marked: str) -> None:
    wanted = [part.strip() for part in marked.split("|")]
    text = marked.replace("| ", "").replace("|", "")
    assert texts_of([text]) == wanted
    assert texts_of(list(text)) == wanted
