"""What is spoken in a benchmark. Written for this project."""

from __future__ import annotations

from typing import Final

PASSAGE: Final = (
    "The harbour museum opens at nine in the morning, and its first guided tour begins soon after.",
    "Tickets can be bought at the door or online.",
    "Children under twelve come in free on weekdays.",
    "If you arrive by train, follow the blue signs from the station to the water front.",
)
"""A turn of four sentences; the first can be cut at its comma."""

STORY: Final = (
    "The ferry to the island leaves twice a day, and the second crossing is the quiet one.",
    "Most of the people on board know each other by name.",
    "A woman with two dogs always sits by the stairs.",
    "The captain greets her first, then looks at the sky.",
    "If the wind comes from the west, the trip takes an hour longer.",
    "Nobody minds, because there is soup below and somebody usually has a guitar.",
    "The lighthouse comes into view just after the third song.",
    "From there you can smell the pines and the smoke of the bakery.",
    "Children run to the bow to be the first to see the harbour.",
    "When the ropes are tied, the whole village seems to be waiting on the pier.",
)
"""A turn of ten sentences."""

WARM_UP: Final = "Is anybody there?"

CLIPS: Final = (
    "Good morning, how can I help you today?",
    "Your parcel was left with the neighbours at number twelve.",
    "Please hold the line while I look for your booking.",
    "The kitchen closes in half an hour.",
    "There are two trains before noon, and both of them stop at the airport.",
    "I am afraid that table is taken, but we have one by the window.",
    "Press the green button twice, then wait for the light.",
    "It will be cloudy at first and clear up towards the evening.",
    "Thank you for your patience.",
    "The nearest chemist is across the square, next to the post office.",
    "Would you like me to read that to you again?",
    "My colleague will call you back before the end of the week.",
    "Turn left at the bridge and keep to the river.",
    "That is a very good question.",
    "The concert has been moved to the small hall on the second floor.",
    "We could not find an account with this name.",
    "Mix the flour with the butter until it looks like crumbs.",
    "He waved from the platform until the train was out of sight.",
    "Your password must be changed within three days.",
    "All of our guides speak at least three languages.",
    "The lift is out of order, so please take the stairs.",
    "Shall we say Thursday, at a quarter past four?",
    "Nobody had told the gardener about the new gate.",
    "That was everything, have a pleasant journey.",
)
