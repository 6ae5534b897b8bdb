"""Words from Amazon Bedrock: ConverseStream, read by a thread of its own for each answer."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import boto3
import botocore.exceptions
from botocore.config import Config

from services.agent.source import Ask, SourceError
from services.agent.thoughts import Thoughts

CONNECT_S = 10.0
PIECES_AHEAD = 64
ANSWERS_AT_ONCE = 256
_MAY_PASS = {
    "throttlingexception",
    "toomanyrequestsexception",
    "serviceunavailableexception",
    "internalserverexception",
    "modelstreamerrorexception",
    "modeltimeoutexception",
    "modelnotreadyexception",
}
_WHAT_TO_DO = {
    "accessdeniedexception": "may this role call bedrock:InvokeModelWithResponseStream on it, and "
    "is access to the model granted?",
    "resourcenotfoundexception": "look at FIRSTWORD_AGENT_MODEL and FIRSTWORD_AGENT_REGION",
    "validationexception": "look at FIRSTWORD_AGENT_MODEL: some need an inference profile's id",
}


@dataclass(frozen=True, slots=True)
class BedrockModel:
    """Which model, where, and how it is asked; an empty region is what AWS's tools would use.

    `patience_s`: how long it may say nothing. `max_tokens` 0: as many as the model likes.
    """

    model: str
    region: str = ""
    system_prompt: str = ""
    max_tokens: int = 0
    patience_s: float = 30.0


class BedrockSource:
    """Answers with what the model says: not with tool use, not with reasoning.

    One for all sessions. Credentials come from wherever AWS's tools find them.
    """

    def __init__(self, model: BedrockModel) -> None:
        self._model = model
        self._making = threading.Lock()
        self._client: Any = None

    async def stream(self, ask: Ask) -> AsyncGenerator[str, None]:
        pieces = _Pieces(asyncio.get_running_loop())
        threading.Thread(target=self._read, args=(ask, pieces), name="bedrock", daemon=True).start()
        thoughts = Thoughts()
        try:
            while (piece := await pieces.get()) is not None:
                if said := thoughts.feed(piece):
                    yield said
            if said := thoughts.end():
                yield said
        finally:
            pieces.hang_up()

    # -- in the answer's thread -------------------------------------------------------------------

    def _read(self, ask: Ask, pieces: _Pieces) -> None:
        end: SourceError | None = None
        try:
            stream = self._made().converse_stream(**self._request(ask))["stream"]
            with contextlib.closing(stream):
                pieces.on_hang_up(stream)
                end = _hand_over(stream, pieces)
        except _HungUp:
            return
        except botocore.exceptions.ClientError as error:
            end = _refused(str(error.response.get("Error", {}).get("Code", "")))
        except botocore.exceptions.BotoCoreError as error:
            end = _unreachable(error)
        except Exception as error:  # what urllib3 raises while a stream is read
            end = _unreachable(error)
        with contextlib.suppress(_HungUp):
            pieces.put(end)

    def _made(self) -> Any:
        with self._making:
            if self._client is None:
                config = Config(
                    connect_timeout=CONNECT_S,
                    read_timeout=self._model.patience_s + 1,
                    max_pool_connections=ANSWERS_AT_ONCE,
                    retries={"mode": "standard", "total_max_attempts": 2},
                )
                region = self._model.region or None
                self._client = boto3.session.Session().client(
                    "bedrock-runtime", region_name=region, config=config
                )
            return self._client

    def _request(self, ask: Ask) -> dict[str, Any]:
        said = [{"role": one.role, "content": [{"text": one.text}]} for one in ask.messages]
        request: dict[str, Any] = {"modelId": self._model.model, "messages": said}
        if self._model.system_prompt:
            request["system"] = [{"text": self._model.system_prompt}]
        if self._model.max_tokens:
            request["inferenceConfig"] = {"maxTokens": self._model.max_tokens}
        return request


def _hand_over(stream: Any, pieces: _Pieces) -> SourceError | None:
    """Pass on all text; afterwards whether it was the end that a model announces."""
    stopped = False
    for event in stream:
        stopped = stopped or "messageStop" in event
        text = event.get("contentBlockDelta", {}).get("delta", {}).get("text")
        if text:
            pieces.put(text)
    if stopped:
        return None
    return SourceError("source_cut", "Bedrock stopped in the middle of the answer", retryable=True)


def _refused(code: str) -> SourceError:
    kind = code.lower()
    advice = _WHAT_TO_DO.get(kind, "see the Bedrock user guide on this error")
    return SourceError(
        "source_refused", f"Bedrock answers {code}: {advice}", retryable=kind in _MAY_PASS
    )


def _unreachable(error: Exception) -> SourceError:
    # Only botocore's own kinds speak of nothing but the configuration.
    why = str(error) if isinstance(error, _ABOUT_SETTINGS) else type(error).__name__
    return SourceError(
        "source_unreachable",
        f"Bedrock cannot be reached: {why}",
        retryable=not isinstance(error, _ABOUT_SETTINGS),
    )


_ABOUT_SETTINGS = (
    botocore.exceptions.NoCredentialsError,
    botocore.exceptions.PartialCredentialsError,
    botocore.exceptions.NoRegionError,
    botocore.exceptions.ProfileNotFound,
    botocore.exceptions.ParamValidationError,
)


class _HungUp(Exception):
    """Nobody wants the rest."""


class _Pieces:
    """What a thread reads, for a task to take: at most PIECES_AHEAD, then the thread waits."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._queue: asyncio.Queue[str | SourceError | None] = asyncio.Queue()
        self._room = threading.Semaphore(PIECES_AHEAD)
        self._gone = threading.Event()
        self._stream: Any = None

    # In the task:

    async def get(self) -> str | None:
        """The next piece, None at the end. Raises SourceError where the thread says so."""
        item = await self._queue.get()
        self._room.release()
        if isinstance(item, SourceError):
            raise item
        return item

    def hang_up(self) -> None:
        """Nothing more is wanted; the thread ends, also one that waits for the model."""
        self._gone.set()
        self._room.release()
        _break_off(self._stream)

    # In the thread:

    def on_hang_up(self, stream: Any) -> None:
        """The stream to break off. Raises _HungUp."""
        self._stream = stream
        if self._gone.is_set():
            raise _HungUp

    def put(self, item: str | SourceError | None) -> None:
        """Hand on; None is the end. Raises _HungUp."""
        self._room.acquire()
        if self._gone.is_set():
            raise _HungUp
        try:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, item)
        except RuntimeError as error:  # the loop is closed
            raise _HungUp from error


def _break_off(stream: Any) -> None:
    """Wake a thread that waits for this stream; without it, it ends with the model's next word."""
    shutdown = getattr(getattr(stream, "_raw_stream", None), "shutdown", None)
    if shutdown is not None:
        with contextlib.suppress(Exception):  # it is over already, or has no connection
            shutdown()
