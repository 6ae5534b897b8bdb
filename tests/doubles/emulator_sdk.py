"""The official client of SageMaker's streams, as little changed as the emulator's CA allows."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from aws_sdk_sagemaker_runtime_http2.client import AsyncSageMakerRuntimeHTTP2Client
from aws_sdk_sagemaker_runtime_http2.config import AsyncSageMakerRuntimeHTTP2Config
from aws_sdk_sagemaker_runtime_http2.models import (
    InvokeEndpointWithBidirectionalStreamInput,
    RequestPayloadPart,
    RequestStreamEventPayloadPart,
    ResponseStreamEventPayloadPart,
)
from awscrt import io as crt_io
from smithy_aws_core.identity import AWSCredentialsIdentity
from smithy_http.aio.crt import AWSCRTHTTPClient, AWSCRTHTTPClientConfig

from firstword.emulator.server import Emulator
from firstword.emulator.signatures import KeyPair

TIMEOUT_S = 60.0
Part = tuple[bytes, str | None, str | None]
"""Bytes, DataType, CompletionState."""


class Trusting(AWSCRTHTTPClient):
    """The client's own transport, with the emulator's CA, and its noise at the end silenced."""

    def __init__(self, ca_pem: bytes) -> None:
        super().__init__(client_config=AWSCRTHTTPClientConfig(force_http_2=True))
        options = crt_io.TlsContextOptions()
        options.override_default_trust_store(ca_pem)
        self._tls_ctx = crt_io.ClientTlsContext(options)
        self._writers: list[asyncio.Task[None]] = []

    def __deepcopy__(self, memo: Any) -> Trusting:
        return self

    async def _await_response(self, stream: Any) -> Any:
        self._writers.append(stream._writer)
        return await super()._await_response(stream)

    async def close(self) -> None:
        await super().close()
        for writer in self._writers:
            writer.cancel()
        await asyncio.gather(*self._writers, return_exceptions=True)


class Credentials:
    """Always the same."""

    def __init__(self, key: KeyPair) -> None:
        self._identity = AWSCredentialsIdentity(
            access_key_id=key.access_key_id,
            secret_access_key=key.secret,
            session_token=key.session_token,
        )

    async def get_identity(self, *, properties: Any) -> AWSCredentialsIdentity:
        return self._identity


class SdkStream:
    """One open stream; every wait has an end."""

    def __init__(self, stream: Any, receiver: Any, output: Any) -> None:
        self.output = output
        self._stream = stream
        self._receiver = receiver

    async def send(
        self, data: bytes, data_type: str | None = None, completion: str | None = None
    ) -> None:
        value = RequestPayloadPart(bytes_=data, data_type=data_type, completion_state=completion)
        event = RequestStreamEventPayloadPart(value=value)
        await asyncio.wait_for(self._stream.input_stream.send(event), TIMEOUT_S)

    async def receive(self) -> Part | None:
        """The next part; None at the end. Raises what the client raises."""
        event = await asyncio.wait_for(self._receiver.receive(), TIMEOUT_S)
        if event is None:
            return None
        assert isinstance(event, ResponseStreamEventPayloadPart)
        return event.value.bytes_ or b"", event.value.data_type, event.value.completion_state

    async def end(self) -> None:
        """Half-close: nothing more comes from us."""
        await asyncio.wait_for(self._stream.input_stream.close(), TIMEOUT_S)


class Sdk:
    """A client; `open` opens one more stream on its connection."""

    def __init__(self, client: Any) -> None:
        self._client = client

    async def open(self, endpoint: str = "demo", **options: str) -> SdkStream:
        wanted = InvokeEndpointWithBidirectionalStreamInput(endpoint_name=endpoint, **options)
        async with asyncio.timeout(TIMEOUT_S):
            stream = await self._client.invoke_endpoint_with_bidirectional_stream(wanted)
            output, receiver = await stream.await_output()
        return SdkStream(stream, receiver, output)


@contextlib.asynccontextmanager
async def sdk(
    emulator: Emulator, *, key: KeyPair | None = None, region: str | None = None
) -> AsyncIterator[Sdk]:
    """A client of the emulator with the right credentials, unless others are given."""
    config = await AsyncSageMakerRuntimeHTTP2Config.resolve(
        endpoint_uri=emulator.uri,
        region=region or emulator.settings.region,
        aws_credentials_identity_resolver=Credentials(key or emulator.settings.key),
        transport=Trusting(emulator.ca_pem),
    )
    client = AsyncSageMakerRuntimeHTTP2Client(config=config)
    try:
        yield Sdk(client)
    finally:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(client.close(), TIMEOUT_S)
