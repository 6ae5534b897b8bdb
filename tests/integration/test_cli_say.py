"""What `say` and `demo` are made of: speaking a text at a pace, hearing it, playing it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from firstword import codec, keys
from firstword import messages as m
from firstword.cli import main
from firstword.cli.performance import Script, perform
from firstword.cli.sinks import LivePcm, Player, find_player
from firstword.cli.stack import require_services
from firstword.client import Firstword
from firstword.embedded import EmbeddedServer
from firstword.errors import FirstwordError
from firstword.ids import START
from tests.doubles.path import PathDouble, heard
from tests.support import eventually

TEXT = "One sentence. And a second one"


@pytest.fixture
async def path(redis_url: str) -> AsyncIterator[PathDouble]:
    """Something that speaks what is published."""
    async with PathDouble(redis_url) as double:
        yield double


@pytest.fixture
async def client(redis_url: str) -> AsyncIterator[Firstword]:
    async with Firstword(redis_url) as firstword:
        yield firstword


@pytest.mark.parametrize("mode", ["stream", "batch"])
async def test_a_text_is_spoken_and_timed(mode: str, path: PathDouble, client: Firstword) -> None:
    pcm: list[bytes] = []
    script = Script(TEXT, tokens_per_second=50.0, mode=mode, voice="af_bella")
    performance = await perform(client, script, [LivePcm(pcm.append)])
    assert heard(b"".join(pcm)) == TEXT
    assert (performance.reason, performance.errors) == ("complete", [])
    fall = performance.waterfall
    assert [row.text for row in fall.rows] == ["One sentence.", " And a second one"]
    assert fall.tokens == 7
    assert round(fall.audio_s, 3) == len(TEXT) / 100
    assert fall.ttfa_ms is not None
    data = performance.as_data()
    assert (data["mode"], data["sample_rate"]) == (mode, 24_000)

    received = path.of(performance.session)
    texts = [message for message in received if isinstance(message, m.Text)]
    assert len(texts) == (7 if mode == "stream" else 1)
    opening = received[0]
    assert isinstance(opening, m.Open)
    assert (opening.voice, opening.pace) == ("af_bella", "none")
    assert isinstance(received[-1], m.Close)


async def test_silence_is_an_error_after_a_while(path: PathDouble, client: Firstword) -> None:
    path.speaking.clear()
    script = Script(TEXT, tokens_per_second=0, silence_s=0.2)
    with pytest.raises(FirstwordError, match=r"nothing was heard for 0\.2 s"):
        await perform(client, script, [])
    await eventually(lambda: _left(path), "the turn is cancelled, for nobody hears it")


async def test_only_audio_is_heard(path: PathDouble, client: Firstword) -> None:
    """A segment that begins again and again must not keep anybody waiting for ever."""
    path.speaking.clear()

    async def restart() -> None:
        session = (await eventually(lambda: path.received, "it is opened"))[0].session
        event = {"m": codec.pack(m.SegmentRestarted(turn="t", n=1), session)}
        while True:
            await client.streams.append(keys.audio(session), event)
            await asyncio.sleep(0.05)

    restarting = asyncio.create_task(restart())
    script = Script(TEXT, tokens_per_second=0, silence_s=0.5)
    try:
        with pytest.raises(FirstwordError, match=r"nothing was heard for 0\.5 s"):
            await asyncio.wait_for(perform(client, script, []), 10)
    finally:
        restarting.cancel()


async def test_a_session_that_somebody_closes_ends_the_writing(
    path: PathDouble, client: Firstword
) -> None:
    task = asyncio.create_task(perform(client, Script(TEXT, tokens_per_second=0.01), []))
    session = (await eventually(lambda: path.received, "it is opened"))[0].session
    event = {"m": codec.pack(m.Closed(reason="idle"), session)}
    await client.streams.append(keys.audio(session), event)
    assert (await asyncio.wait_for(task, 10)).reason == "closed (idle)"


@pytest.mark.parametrize("speaking", [True, False])
async def test_whoever_is_interrupted_cancels_the_turn(
    speaking: bool, path: PathDouble, client: Firstword
) -> None:
    heard_some = asyncio.Event()

    class Ear:
        def feed(self, message: m.Audio) -> None:
            if isinstance(message, m.AudioChunk):
                path.speaking.clear()
                heard_some.set()

    pace = 0 if speaking else 5.0
    script = Script(TEXT, tokens_per_second=pace)
    task = asyncio.create_task(perform(client, script, [Ear()]))
    if speaking:
        await heard_some.wait()
    else:
        written = lambda: any(isinstance(message, m.Text) for message in path.received)  # noqa: E731
        await eventually(written, "it is being written")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: _left(path), "the turn is cancelled, and the session closed")


async def test_giving_up_does_not_wait_for_a_server_that_is_gone(
    make_server: Callable[..., EmbeddedServer],
) -> None:
    server = await asyncio.to_thread(make_server)
    async with Firstword(server.url) as client:
        task = asyncio.create_task(perform(client, Script(TEXT, tokens_per_second=0), []))
        await eventually(lambda: client.streams.range(keys.DOOR, START), "it has begun")
        await asyncio.to_thread(server.kill)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 8)  # who publishes would insist for longer


def _left(path: PathDouble) -> bool:
    return [type(message) for message in path.received[-2:]] == [m.Cancel, m.Close]


def test_an_empty_text_is_an_error_before_anything_is_started(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["say", " \n"]) == 1
    assert capsys.readouterr().err == ("firstword: the text is empty: give some words to speak\n")


async def test_a_text_that_cannot_be_published_is_an_error(
    path: PathDouble, client: Firstword
) -> None:
    """An error in writing must not leave the listener waiting."""
    script = Script("half \ud83d of a pair", tokens_per_second=0)
    with pytest.raises(FirstwordError, match="half of a surrogate pair"):
        await perform(client, script, [])


async def test_without_workers_nobody_is_asked_to_wait(client: Firstword) -> None:
    with pytest.raises(FirstwordError, match=r"no segmenter and no gateway works on redis://"):
        await require_services(client)


# -- playing --------------------------------------------------------------------------------------

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a program into an otherwise empty PATH; it may use /bin and /usr/bin by full path."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def make(name: str, script: str) -> None:
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)

    return make


STARTED = m.TurnStarted(turn="t", voice="af_heart", sample_rate=8_000)
CHUNK = m.AudioChunk(turn="t", n=1, offset=0, data=b"samples!")


def test_a_live_player_is_preferred(install: Install) -> None:
    assert find_player() is None
    install("afplay", "")
    assert find_player() == "afplay"
    install("aplay", "")
    assert find_player() == "aplay"


async def test_a_live_player_gets_the_samples_as_they_come(
    install: Install, tmp_path: Path
) -> None:
    install("paplay", f'echo "$@" > {tmp_path}/arguments; /bin/cat > {tmp_path}/heard')
    player = Player("paplay")
    player.feed(STARTED)
    player.feed(CHUNK)
    await player.finish(tmp_path / "unused.wav")
    assert player.problem is None
    assert (tmp_path / "heard").read_bytes() == b"samples!"
    assert "--rate=8000" in (tmp_path / "arguments").read_text()


async def test_a_player_of_files_gets_the_file(install: Install, tmp_path: Path) -> None:
    install("afplay", f'echo "$@" > {tmp_path}/arguments')
    player = Player("afplay")
    player.feed(STARTED)
    player.feed(CHUNK)
    await player.finish(tmp_path / "x.wav")
    assert player.problem is None
    assert (tmp_path / "arguments").read_text() == f"{tmp_path}/x.wav\n"


async def test_a_player_without_a_sound_card_is_only_a_note(
    install: Install, tmp_path: Path
) -> None:
    install("aplay", "echo 'no card' >&2; exit 1")
    player = Player("aplay")
    player.feed(STARTED)
    for _ in range(100):  # more than a pipe holds, to a player that has gone
        player.feed(m.AudioChunk(turn="t", n=1, offset=0, data=bytes(16_000)))
    await player.finish(tmp_path / "unused.wav")
    assert player.problem == "aplay: no card"


async def test_a_player_that_is_gone_is_only_a_note(install: Install, tmp_path: Path) -> None:
    player = Player("ffplay")
    player.feed(STARTED)
    await player.finish(tmp_path / "unused.wav")
    assert player.problem == "ffplay: No such file or directory"


async def test_a_silent_turn_needs_no_player(tmp_path: Path) -> None:
    player = Player("paplay")
    await player.finish(tmp_path / "unused.wav")
    await player.stop()
    assert player.problem is None


async def test_a_player_can_be_stopped(install: Install, tmp_path: Path) -> None:
    install("paplay", f"echo $$ > {tmp_path}/pid; exec /bin/sleep 60")
    player = Player("paplay")
    player.feed(STARTED)

    def pid() -> int:
        file = tmp_path / "pid"
        return int(file.read_text() or 0) if file.exists() else 0

    await eventually(pid, "the player runs")
    await player.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid(), 0)
