"""`POST /v1/audio/speech`: a text in, an audio file out while it is still being synthesised."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing

from aiohttp import web

from firstword import logs, telemetry
from firstword import messages as m
from firstword.audio import SAMPLE_BYTES
from firstword.client import Firstword, Listener, Manner, Session
from firstword.encoding import Encoder, EncodingError, encoded
from firstword.errors import FirstwordError
from services.agent.conversation import CallerGone, Farewells
from services.agent.core import RequestError
from services.agent.doors import CALLER, Doors
from services.agent.settings import AgentSettings
from services.agent.speech_request import (
    MODEL,
    SAMPLE_RATE,
    Speech,
    Spoken,
    SpokenError,
    delta,
    done,
    model,
    models,
    parse_speech,
)
from services.agent.sse import HEADERS, Lines

TURN = "speech"
FAREWELL_S = 2.0
HELD_EVENTS = 2_048
"""How much is buffered for one reader: files are made as fast as possible, but players read as they
play. About ten minutes, at most 32 MB."""


class SpeechDoor:
    """The routes of OpenAI's API. `installed`: the voices known to be, including `default`."""

    def __init__(
        self,
        firstword: Firstword,
        settings: AgentSettings,
        doors: Doors,
        installed: frozenset[str],
        default: str,
    ) -> None:
        self._firstword = firstword
        self._settings = settings
        self._doors = doors
        self._installed = installed
        self._default = default
        self._farewells = Farewells()

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/audio/speech", self.speak)
        router.add_get("/v1/models", self.list_models)
        router.add_get("/v1/models/{model}", self.show_model)

    async def stop(self) -> None:
        """Wait until the turns that nobody hears any more are cancelled."""
        await self._farewells.finish(FAREWELL_S)

    async def list_models(self, _request: web.Request) -> web.Response:
        return web.json_response(models())

    async def show_model(self, request: web.Request) -> web.Response:
        if request.match_info["model"] != MODEL:
            raise RequestError("model_not_found", f"there is one model, {MODEL}")
        return web.json_response(model())

    async def speak(self, request: web.Request) -> web.StreamResponse:
        caller = request[CALLER]
        limits = self._settings.limits()
        asked = parse_speech(await request.read(), limits, self._installed, self._default)
        encoder = await asyncio.to_thread(_encoder, asked)  # the first one loads the codecs
        full = caller.full(f"speech-{secrets.token_hex(8)}")
        with (
            self._doors.using(caller, full),
            telemetry.callers.labels("speech").track_inprogress(),
        ):
            self._doors.spend(caller, len(asked.text))
            session = self._firstword.session(full, pace="none", sample_rate=SAMPLE_RATE)
            listener = await session.listener()
            try:
                await session.open()
            except asyncio.CancelledError:  # the caller is gone, and it may be open all the same
                self._farewells.see_to(_say_farewell(session, complete=True))
                raise
            spoken = Spoken(TURN)
            sound = self._sound(session, listener, asked, spoken)
            logs.bind(session=full)
            try:
                async with aclosing(sound), aclosing(encoded(encoder, sound)) as file:
                    return await self._answer(request, asked, encoder, spoken, file)
            finally:
                logs.bind(session=None)  # the caller's next request comes in the same task
                self._farewells.see_to(_say_farewell(session, complete=spoken.over))

    async def _answer(
        self,
        request: web.Request,
        asked: Speech,
        encoder: Encoder,
        spoken: Spoken,
        file: AsyncGenerator[bytes, None],
    ) -> web.StreamResponse:
        first = await anext(file, b"")  # what goes wrong before the first byte has a status
        headers = HEADERS if asked.events else {"Content-Type": encoder.content_type}
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        lines = Lines(response)
        patient = lines.patient(
            request.transport, self._settings.stall_s, "speech", say_why=asked.events
        )
        try:
            async with patient:
                async for data in _with(first, file):
                    await (lines.send(delta(data)) if asked.events else lines.write(data))
                if asked.events:
                    await lines.send(done(len(asked.text), spoken.samples))
        except FirstwordError as error:
            # The status is sent: breaking off the body is the only way left to report it.
            telemetry.logger().warning("speech_broken_off", code=error.code)
            if request.transport is not None:
                request.transport.abort()
        except CallerGone:
            pass
        return response

    async def _sound(
        self, session: Session, listener: Listener, asked: Speech, spoken: Spoken
    ) -> AsyncGenerator[bytes, None]:
        """The turn's samples as they come. Raises FirstwordError if some are missing."""
        began = asyncio.get_running_loop().time()
        happened: asyncio.Queue[m.Audio | FirstwordError] = asyncio.Queue(HELD_EVENTS)

        async def say() -> None:
            manner = Manner(voice=asked.voice, speed=asked.speed, lang=asked.lang)
            try:
                await session.say(asked.text, turn=TURN, manner=manner)
            except FirstwordError as error:
                await happened.put(error)

        async def hear() -> None:
            try:
                async for event in listener:
                    await happened.put(event.message)
            except FirstwordError as error:
                await happened.put(error)

        tasks = [asyncio.create_task(work()) for work in (say, hear)]
        try:
            while not spoken.over:
                pcm = spoken.feed(await self._next(happened))
                if pcm and spoken.samples * SAMPLE_BYTES == len(pcm):
                    waited = asyncio.get_running_loop().time() - began
                    telemetry.client_first_audio.labels("stream").observe(waited)
                if pcm:
                    yield pcm
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _next(self, happened: asyncio.Queue[m.Audio | FirstwordError]) -> m.Audio:
        patience_s = self._settings.patience_s
        try:
            async with asyncio.timeout(patience_s):
                found = await happened.get()
        except TimeoutError:
            raise SpokenError(
                "no_speech",
                f"nothing was heard for {patience_s:g} s: are a segmenter, a gateway and an "
                "inference service running?",
                retryable=True,
            ) from None
        if isinstance(found, FirstwordError):
            raise found
        return found


async def _say_farewell(session: Session, *, complete: bool) -> None:
    with contextlib.suppress(FirstwordError):  # the gateway closes idle sessions too
        if not complete:
            await session.cancel(TURN)
        await session.close()


async def _with(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for data in rest:
        yield data


def _encoder(asked: Speech) -> Encoder:
    try:
        return Encoder(asked.format, SAMPLE_RATE)
    except EncodingError as error:  # a package that is not installed here
        raise RequestError(error.code, error.message) from error
