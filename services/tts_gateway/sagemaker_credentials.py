"""The gateway's AWS credentials: botocore's chain, used off the event loop, fixed per stream."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import botocore.exceptions
import botocore.session
from smithy_aws_core.identity import AWSCredentialsIdentity, AWSIdentityProperties

from firstword.errors import UpstreamError
from services.tts_gateway import sagemaker_errors as errors
from services.tts_gateway.sagemaker_target import Target

PORT = 8443
"""The service accepts streams on this port; on 443, the SDK's choice, it never answers them."""

_MAY_PASS = (
    botocore.exceptions.HTTPClientError,
    botocore.exceptions.CredentialRetrievalError,
    botocore.exceptions.MetadataRetrievalError,
)


@dataclass(frozen=True, slots=True)
class Caller:
    """Everything of AWS's configuration that one stream needs. It never changes.

    The SDK asks for the identity at every event; keys that changed in between would break the chain
    of signatures.
    """

    identity: AWSCredentialsIdentity
    region: str
    endpoint_uri: str
    valid_s: float | None
    """For how many seconds the keys are valid; None: without limit."""

    async def get_identity(self, *, properties: AWSIdentityProperties) -> AWSCredentialsIdentity:
        """The SDK's interface of an identity resolver."""
        return self.identity


class Callers:
    """Makes callers. Credentials come from where AWS's tools find them, and go nowhere else."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._session: botocore.session.Session | None = None
        self._making = asyncio.Lock()

    async def caller(self) -> Caller:
        """A caller with the present keys. Raises UpstreamError that says what to do."""
        async with self._making:
            return await asyncio.to_thread(self._make)

    def forget(self) -> None:
        """Look for keys again next time: refused ones may have been fixed by then."""
        self._session = None

    def _make(self) -> Caller:
        try:
            return self._ask()
        except UpstreamError:
            self.forget()
            raise
        except botocore.exceptions.BotoCoreError as error:
            self.forget()
            may_pass = isinstance(error, _MAY_PASS)
            raise errors.no_credentials(str(error), retryable=may_pass) from error

    def _ask(self) -> Caller:
        if self._session is None:
            self._session = botocore.session.Session(profile=self._target.profile or None)
        session = self._session
        region = (
            self._target.region
            or os.environ.get("AWS_REGION")
            or session.get_config_variable("region")
        )
        if not region:
            raise errors.no_region()
        uri = self._target.endpoint_uri or _endpoint_uri(session, region, self._target.fips)
        credentials = session.get_credentials()
        if credentials is None:
            raise errors.no_credentials("none are configured")
        keys = credentials.get_frozen_credentials()
        identity = AWSCredentialsIdentity(
            access_key_id=keys.access_key,
            secret_access_key=keys.secret_key,
            session_token=keys.token or None,
        )
        return Caller(identity, region, uri.rstrip("/"), _valid_s(credentials))


def _endpoint_uri(session: botocore.session.Session, region: str, fips: bool) -> str:
    """AWS's address for the region, in whichever partition it lies."""
    partitions = session.get_data("partitions")["partitions"]
    ours = (part for part in partitions if re.match(part["regionRegex"], region))
    suffix = next((part["outputs"]["dnsSuffix"] for part in ours), "amazonaws.com")
    prefix = "runtime-fips" if fips else "runtime"
    return f"https://{prefix}.sagemaker.{region}.{suffix}:{PORT}"


def _valid_s(credentials: Any) -> float | None:
    """When the keys expire: botocore renews temporary keys in time, but has no public expiry."""
    expiry: datetime | None = getattr(credentials, "_expiry_time", None)
    return None if expiry is None else (expiry - datetime.now(UTC)).total_seconds()
