"""The SageMaker upstream: one bidirectional HTTP/2 stream per session, by the official SDK.

The container behind the endpoint sees a WebSocket; we see payload parts. docs/SAGEMAKER.md is for
operators. Needs Python 3.12 and the extra `sagemaker`.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import logging
import random
import re
from pathlib import Path
from typing import Any

from aws_sdk_sagemaker_runtime_http2.client import AsyncSageMakerRuntimeHTTP2Client
from aws_sdk_sagemaker_runtime_http2.config import AsyncSageMakerRuntimeHTTP2Config
from aws_sdk_sagemaker_runtime_http2.models import (
    InvokeEndpointWithBidirectionalStreamInput,
    ModelStreamError,
    RequestPayloadPart,
    RequestStreamEvent,
    RequestStreamEventPayloadPart,
    ResponseStreamEvent,
    ResponseStreamEventPayloadPart,
)
from smithy_core.aio.eventstream import DuplexEventStream
from smithy_core.aio.interfaces.eventstream import EventReceiver
from smithy_core.exceptions import CallError

from firstword import telemetry
from firstword.errors import SettingsError, UpstreamError
from firstword.session_protocol import Close, Frame, encode_client
from services.tts_gateway import sagemaker_errors as errors
from services.tts_gateway.sagemaker_credentials import Caller, Callers
from services.tts_gateway.sagemaker_parts import BINARY, COMPLETE, UTF8, Joiner, Part
from services.tts_gateway.sagemaker_target import Target
from services.tts_gateway.sagemaker_transport import Shared, Transport
from services.tts_gateway.upstream import Link

OPEN_S = 10.0
"""To open a stream as far as the container's WebSocket."""
SEND_S = 10.0
"""A far end that takes nothing for this long is gone."""
GOODBYE_S = 1.0
CLOSE_S = 2.0
EARLIEST_S, LATEST_S = 0.97, 1.0
"""When a stream is replaced, as a share of its lifetime: at random, so that sessions that began
together do not all change at once."""
KEYS_MARGIN_S = 60.0
"""How long before its keys expire a stream is replaced."""

_UNMODELED = re.compile(r" - id: (?:\S+#)?(\w+)")
"""Where the SDK puts the name of an error that it has no class for."""

# At level DEBUG these write what is said.
for _name in ("smithy_aws_event_stream", "smithy_core", "aws_sdk_sagemaker_runtime_http2"):
    logging.getLogger(_name).setLevel(logging.INFO)
logging.getLogger("botocore.credentials").setLevel(logging.WARNING)  # one line for each session

Stream = DuplexEventStream[RequestStreamEvent, ResponseStreamEvent, Any]


class SageMakerUpstream:
    """Opens one stream per session, each on a connection of its own."""

    def __init__(self, target: Target) -> None:
        """Raises SettingsError if the CA file cannot be read."""
        self._target = target
        self._callers = Callers(target)
        self._shared = Shared(_read_ca(target))
        self._config: AsyncSageMakerRuntimeHTTP2Config | None = None

    async def connect(self) -> Link:
        """Raises UpstreamError; not retryable if a person has to do something first."""
        caller = await self._callers.caller()
        transport = Transport(self._shared)
        try:
            async with asyncio.timeout(OPEN_S):
                stream, receiver = await self._open(await self._configured(caller, transport))
        except TimeoutError as error:
            await _close(transport)
            raise errors.unanswered(caller.endpoint_uri, OPEN_S) from error
        except Exception as error:
            await _close(transport)
            told = self._refused(caller, error)
            if told.code == errors.FORBIDDEN:
                self._callers.forget()
            raise told from error
        except asyncio.CancelledError:
            await _close(transport)
            raise
        return SageMakerLink(transport, stream, receiver, self._max_age_s(caller))

    async def look(self) -> None:
        """Open a stream as far as the container's WebSocket, and close it.

        Instances are paid by the hour, so this costs nothing; and nothing less shows that name,
        keys and role are right and that the container accepts connections.
        """
        await (await self.connect()).close()

    async def close(self) -> None:
        """Nothing to free: the thread that the streams share ends with the process."""

    async def _configured(
        self, caller: Caller, transport: Transport
    ) -> AsyncSageMakerRuntimeHTTP2Config:
        """For one stream. AWS's files are read once."""
        if self._config is None:
            self._config = await AsyncSageMakerRuntimeHTTP2Config.resolve(
                region=caller.region,
                endpoint_uri=caller.endpoint_uri,
                transport=transport,
                aws_credentials_identity_resolver=caller,
            )
        config = copy.copy(self._config)
        config.region, config.endpoint_uri = caller.region, caller.endpoint_uri
        config.transport = transport
        config.aws_credentials_identity_resolver = caller
        return config

    async def _open(
        self, config: AsyncSageMakerRuntimeHTTP2Config
    ) -> tuple[Stream, EventReceiver[ResponseStreamEvent]]:
        target = self._target
        client = AsyncSageMakerRuntimeHTTP2Client(config)
        stream = await client.invoke_endpoint_with_bidirectional_stream(
            InvokeEndpointWithBidirectionalStreamInput(
                endpoint_name=target.endpoint,
                target_variant=target.variant or None,
                model_invocation_path=target.path or None,
                model_query_string=target.query or None,
            )
        )
        output, receiver = await stream.await_output()
        request_id = output.response_metadata.request_id
        telemetry.logger().info("sagemaker_stream_opened", request_id=request_id)
        return stream, receiver

    def _refused(self, caller: Caller, error: Exception) -> UpstreamError:
        status = error.response_metadata.http_status_code if isinstance(error, CallError) else None
        if status is None:
            return errors.unreachable(caller.endpoint_uri, _reason(error))
        unmodeled = _UNMODELED.search(str(error))
        name = unmodeled[1] if unmodeled else type(error).__name__
        told = errors.refused(self._target, caller.region, status, name, str(error))
        telemetry.logger().warning("sagemaker_refused", status=status, said=str(error))
        return told

    def _max_age_s(self, caller: Caller) -> float:
        age_s = self._target.max_age_s * random.uniform(EARLIEST_S, LATEST_S)  # noqa: S311
        if caller.valid_s is None:
            return age_s
        return min(age_s, max(KEYS_MARGIN_S, caller.valid_s - KEYS_MARGIN_S))


class SageMakerLink:
    """One stream. One task writes and one reads; callers that stop waiting interrupt neither.

    A cancelled receive would break the stream, a cancelled send its chain of signatures.
    """

    def __init__(
        self,
        transport: Transport,
        stream: Stream,
        receiver: EventReceiver[ResponseStreamEvent],
        max_age_s: float,
    ) -> None:
        self.max_age_s = max_age_s
        self._transport = transport
        self._stream = stream
        self._receiver = receiver
        self._joiner = Joiner()
        self._closed = False
        self._end: UpstreamError | None = None
        self._inbox: asyncio.Queue[tuple[Frame, bool | None] | None] = asyncio.Queue()
        self._outbox: asyncio.Queue[tuple[RequestPayloadPart, asyncio.Event]] = asyncio.Queue()
        self._unsent: set[asyncio.Event] = set()
        self._reader = asyncio.create_task(self._read())
        self._writer = asyncio.create_task(self._write())

    async def send(self, frame: Frame) -> None:
        if self._end is not None:
            raise self._end
        data = frame if isinstance(frame, bytes) else frame.encode()
        # Without a type the container would get a binary frame.
        kind = BINARY if isinstance(frame, bytes) else UTF8
        sent = asyncio.Event()
        part = RequestPayloadPart(bytes_=data, data_type=kind, completion_state=COMPLETE)
        self._outbox.put_nowait((part, sent))
        self._unsent.add(sent)
        try:
            async with asyncio.timeout(SEND_S):
                await sent.wait()
        except TimeoutError:
            self._finish(errors.ended("it takes nothing any more"))
        finally:
            self._unsent.remove(sent)
        if self._end is not None:
            raise self._end

    async def receive(self) -> tuple[Frame, bool | None]:
        came = await self._inbox.get()
        if came is None:
            self._inbox.put_nowait(None)  # for the next call: a link that has ended stays ended
            assert self._end is not None  # noqa: S101
            raise self._end
        return came

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # Each step on its own: a far end that takes nothing must not keep the connection open.
        with contextlib.suppress(Exception):
            async with asyncio.timeout(GOODBYE_S):
                await self.send(encode_client(Close()))
        with contextlib.suppress(Exception):
            async with asyncio.timeout(GOODBYE_S):
                await self._end_in_order()
        self._finish(errors.ended("closed"))
        await _close(self._transport)  # which ends the reader
        await asyncio.wait([self._reader], timeout=CLOSE_S)
        self._reader.cancel()
        self._writer.cancel()
        await asyncio.gather(self._reader, self._writer, return_exceptions=True)

    async def _end_in_order(self) -> None:
        if self._end is None:
            await self._stream.input_stream.close()
            await self._transport.written()
            await asyncio.wait([self._reader])

    def _finish(self, end: UpstreamError) -> None:
        """The stream is over; the first reason counts."""
        if self._end is None:
            self._end = end
            self._inbox.put_nowait(None)
            for sent in self._unsent:
                sent.set()

    async def _write(self) -> None:
        while True:
            part, sent = await self._outbox.get()
            try:
                await self._stream.input_stream.send(RequestStreamEventPayloadPart(value=part))
            except Exception as error:
                self._finish(errors.ended(_reason(error)))
            sent.set()

    async def _read(self) -> None:
        try:
            while (event := await self._receiver.receive()) is not None:
                self._take(event)
        except UpstreamError as error:
            self._finish(error)
        except Exception as error:
            self._finish(errors.ended(_reason(error)))
        else:
            self._finish(errors.ended("the endpoint ended it"))

    def _take(self, event: ResponseStreamEvent) -> None:
        if not isinstance(event, ResponseStreamEventPayloadPart):
            return  # of a kind that is newer than we
        part = event.value
        frame = self._joiner.add(Part(part.bytes_ or b"", part.data_type, part.completion_state))
        if frame is not None:
            self._inbox.put_nowait(frame)


def _reason(error: Exception) -> str:
    """In which words a stream ended; the SDK wraps the transport's."""
    if isinstance(error, ModelStreamError):
        return f"the container ended it: {error.error_code} {error.message}"
    cause = error.__cause__ or error
    return str(cause) or type(cause).__name__


async def _close(transport: Transport) -> None:
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSE_S):
            await transport.close()


def _read_ca(target: Target) -> bytes | None:
    if not target.ca:
        return None
    try:
        return Path(target.ca).read_bytes()
    except OSError as error:
        problem = f"FIRSTWORD_UPSTREAM: ca={target.ca}: {error.strerror}"
        raise SettingsError([problem]) from error
