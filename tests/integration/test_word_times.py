"""Word times against what is heard: the energy of the real voice, nine voices in five languages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from firstword.session_protocol import Words
from services.inference.audio import TRIMMING, to_pcm
from services.inference.lexicon import Lexicon, read
from services.inference.pieces import CLAUSE, PAUSE_S
from services.inference.synthesizer import Stop, Utterance
from services.inference.word_times import joined
from tests.doubles.ears import share_recognised
from tests.doubles.engines import kokoro

pytestmark = pytest.mark.model

TOLERANCE_S = 0.06
WINDOW_S = 0.01
QUIET_DB = 30
"""Below the loudest 10 ms: nothing is said there."""
FADED_DB = 40
"""The same of a last sound, which nothing hurries: a vowel fades for a tenth of a second."""


def spoken(text: str, voice: str, lang: str) -> tuple[npt.NDArray[np.float32], Words]:
    engine = kokoro()
    prepared = engine.prepare(Utterance(text, voice, lang))
    assert len(prepared.pieces) == 1
    audio = engine.synthesize(prepared, 0, Stop())
    return audio.samples, joined(audio.words)


def pauses(
    samples: npt.NDArray[np.float32], quiet_db: float = QUIET_DB, least_s: float = 0.03
) -> list[tuple[float, float]]:
    """Where it is quiet for a while: begin and end in seconds, the ends of the audio included."""
    window = round(WINDOW_S * kokoro().sample_rate)
    count = len(samples) // window
    power = np.square(samples[: count * window].reshape(count, window)).mean(axis=1)
    quiet = 10 * np.log10(power + 1e-12) < 10 * np.log10(power.max()) - quiet_db
    edges = np.flatnonzero(np.diff(np.concatenate([[False], quiet, [False]]).astype(int)))
    found = [(a * WINDOW_S, b * WINDOW_S) for a, b in edges.reshape(-1, 2)]
    return [(a, b) for a, b in found if b - a >= least_s]


@pytest.mark.parametrize(
    ("voice", "lang", "text", "heard"),
    [
        ("af_heart", "en-us", "Bananas, apples, $5, tomatoes.", (0, 1, 2)),
        ("am_adam", "en-us", "Sunday, Monday, $5, goodbye.", (1, 2)),
        ("ef_dora", "es", "Bananas, peras, 21 €, tomates.", (0, 2)),
        ("bf_emma", "en-gb", "Carrots, potatoes, £20, onions.", (0, 1)),
        ("bm_george", "en-gb", "Oxford, Cambridge, 1066, London.", (0, 1, 2)),
        ("af_bella", "en-us", "Tokyo, Paris, NASA, Boston.", (0,)),
        ("af_nicole", "en-us", "Bread, butter, 12%, cheese.", (0, 1, 2)),
        ("em_alex", "es", "Rojo, verde, 15:30, negro.", (1,)),
        ("if_sara", "it", "Banane, patate, 20 €, limoni.", (0,)),
        ("ff_siwis", "fr-fr", "Bananes, tomates, 21 €, carottes.", (0, 1, 2)),
        ("pf_dora", "pt-br", "Bananas, batatas, 20 €, tomates.", (2,)),
        ("hf_alpha", "hi", "केला, टमाटर, 20, आलू.", (0, 1, 2)),
    ],
)
def test_words_end_and_begin_where_the_voice_pauses(
    voice: str, lang: str, text: str, heard: tuple[int, ...]
) -> None:
    """At a comma the voice is silent: there it is heard when a word ends and the next begins.

    `heard`: the commas at which this voice makes a pause that can be measured. At the others there
    is none anywhere near.
    """
    samples, words = spoken(text, voice, lang)
    assert [text[start:end] for start, end, _, _ in words] == text.rstrip(".").split(", ")
    silences = pauses(samples)
    for index in range(len(words) - 1):
        ends, begins = words[index][3], words[index + 1][2]
        if index not in heard:
            near = (ends - TOLERANCE_S, begins + TOLERANCE_S)
            assert not [a for a, b in silences if a < near[1] and near[0] < b]
            continue
        pause = min(silences, key=lambda pause: abs(pause[0] - ends) + abs(pause[1] - begins))
        assert pause[0] == pytest.approx(ends, abs=TOLERANCE_S), f"the end of word {index}"
        assert pause[1] == pytest.approx(begins, abs=TOLERANCE_S), f"the begin of word {index + 1}"
    assert pauses(samples, FADED_DB)[-1][0] == pytest.approx(words[-1][3], abs=TOLERANCE_S)


def test_a_voice_that_breathes_out_makes_no_longer_pause() -> None:
    """This one does, for half a second behind its last word, sometimes above -50 dBFS."""
    text = "When the rain finally stopped in the evening,"
    samples, words = spoken(text, "am_onyx", "en-us")
    window = round(WINDOW_S * kokoro().sample_rate)
    power = np.square(samples[: len(samples) // window * window].reshape(-1, window)).mean(axis=1)
    clear_s = (np.flatnonzero(power > 10**-4.5)[-1] + 1) * WINDOW_S
    near = TOLERANCE_S + WINDOW_S / 2
    assert len(samples) / kokoro().sample_rate - clear_s <= PAUSE_S[CLAUSE] + near
    assert words[-1][3] == pytest.approx(clear_s, abs=near)


def test_how_silence_is_cut_belongs_to_the_plan() -> None:
    """A container of another version, which cuts otherwise, must not go on in the middle."""
    assert TRIMMING in kokoro().name


def test_a_mixture_is_a_voice_of_its_own_between_the_two() -> None:
    text = "The weather is lovely today."
    blend = spoken(text, "af_heart:0.5+bf_emma:0.5", "en-us")[0]
    assert share_recognised(text, to_pcm(blend)) >= 0.8
    plans = {
        voice: kokoro().prepare(Utterance(text, voice, "en-us")).plan
        for voice in ("af_heart", "af_heart:0.5+bf_emma:0.5", "af_heart:0.6+bf_emma:0.4")
    }
    assert len(set(plans.values())) == 3


def test_a_pronunciation_of_the_session_is_part_of_the_plan_where_it_is_heard() -> None:
    def plan(text: str, lexicon: Lexicon | None) -> str:
        return kokoro().prepare(Utterance(text, "af_heart", "en-us", lexicon=lexicon)).plan

    words = read({"lovely": "/lˈʌvli/", "gloomy": "/ɡlˈumi/"})
    other = read({"lovely": "/lˈAvli/"})
    assert plan("It is lovely.", words) != plan("It is lovely.", other)
    assert plan("It is fine.", words) == plan("It is fine.", None)


def test_what_was_normalised_is_understood() -> None:
    text = "It costs $45 at 10:30 a.m., says Dr. Brown."
    samples, _ = spoken(text, "af_heart", "en-us")
    said = "It costs forty-five dollars at ten thirty a m says doctor Brown"
    heard = max(share_recognised(wanted, to_pcm(samples)) for wanted in (text, said))
    assert heard >= 0.7
