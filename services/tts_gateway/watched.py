"""An upstream that watches how its connections fare, and probes the backend while they fail."""

from __future__ import annotations

import asyncio

from firstword import telemetry
from firstword.errors import FirstwordError
from firstword.session_protocol import Frame, Ping, encode_client
from services.tts_gateway.doctor_visit import Visit
from services.tts_gateway.reachability import Reachability
from services.tts_gateway.upstream import Link, Upstream

PROBE_S = 5.0
"""How often a backend that counts as away is probed."""
WORD = "Yes."
WORD_S = 10.0
"""A mute backend is well again if it speaks the word within this time."""
HOLD_S = 3.0
"""A connection that stays this long, or on which something comes, is a success."""


class WatchedUpstream:
    """Wraps another upstream and counts its outcomes over all sessions of the process."""

    def __init__(self, upstream: Upstream) -> None:
        self.reachability = Reachability()
        self._upstream = upstream

    def problem(self) -> str | None:
        """Why no speech can be expected of the backend, for `/readyz`; None when well."""
        return self.reachability.problem(_now())

    async def connect(self) -> Link:
        """As the wrapped upstream's."""
        try:
            link = await self._upstream.connect()
        except FirstwordError as error:
            telemetry.upstream_failures.labels(telemetry.known_code(error.code)).inc()
            self.reachability.refused(error.message)
            raise
        return WatchedLink(link, self.reachability)

    async def close(self) -> None:
        await self._upstream.close()

    async def look(self) -> None:
        """Until cancelled: probe the backend at the start and while it is not well.

        Otherwise a gateway without sessions would never learn that it is well again. Only a mute
        backend is given work: one word.
        """
        while True:
            if self.problem() is not None:
                try:
                    await self._look_closer()
                except Exception as error:  # if it is a failure, it has been counted
                    name = getattr(error, "code", type(error).__name__)
                    telemetry.logger().info("upstream_still_away", error=name)
            await asyncio.sleep(PROBE_S)

    async def _look_closer(self) -> None:
        if self.reachability.mute:
            await self._hear_a_word()
        elif self.reachability.untried:
            await self._first_look()
        else:
            await self._probe()

    async def _first_look(self) -> None:
        """Without a connection of the kind that sessions use: a backend may have few of them."""
        try:
            await self._upstream.look()
        except FirstwordError as error:
            self.reachability.refused(error.message)
            raise
        self.reachability.worked(_now())

    async def _hear_a_word(self) -> None:
        visit = Visit(await self.connect(), voice="")
        try:
            async with asyncio.timeout(WORD_S):
                await visit.say(WORD, first=True)
            self.reachability.spoke(_now())
        finally:
            await visit.leave()

    async def _probe(self) -> None:
        link = await self.connect()
        try:
            await link.send(encode_client(Ping()))
            async with asyncio.timeout(HOLD_S):
                await link.receive()
        except TimeoutError:
            self.reachability.worked(_now())
        finally:
            await link.close()


class WatchedLink:
    """Wraps another link: the first thing that comes on it, or its end, is its outcome."""

    def __init__(self, link: Link, reachability: Reachability) -> None:
        self.max_age_s = link.max_age_s
        self._link = link
        self._reachability = reachability
        self._opened_at = _now()
        self._asked = False
        self._told = False  # its outcome
        self._closed = False

    async def send(self, frame: Frame) -> None:
        self._asked = True
        await self._link.send(frame)

    async def receive(self) -> tuple[Frame, bool | None]:
        try:
            came = await self._link.receive()
        except FirstwordError as error:
            if not self._closed:
                telemetry.upstream_failures.labels(telemetry.known_code(error.code)).inc()
            if not self._told:
                self._told = True
                lived_s = _now() - self._opened_at
                self._reachability.ended(error.message, lived_s, asked=self._asked)
            raise
        self._told = True
        self._reachability.worked(_now())
        return came

    async def close(self) -> None:
        self._told = self._closed = True  # its end is no failure: we close it
        await self._link.close()


def _now() -> float:
    return asyncio.get_running_loop().time()
