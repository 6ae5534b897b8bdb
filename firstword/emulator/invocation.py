"""What a request asks for, checked as the service does before any stream is opened."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass
from urllib.parse import unquote

from firstword import session_address
from firstword.emulator.signatures import Request
from firstword.errors import FirstwordError

DEFAULT_PATH = session_address.PATH.lstrip("/")

_ROUTE = re.compile(r"/endpoints/(?P<endpoint>[^/]*)/invocations-bidirectional-stream")
_ENDPOINT = re.compile(r"[A-Za-z0-9](?:-*[A-Za-z0-9])*")
_VARIANT = _ENDPOINT
_PATH = re.compile(r"[A-Za-z0-9\-._]+(?:/[A-Za-z0-9\-._]+)*")
_PAIR = r"[\w\-.~%!$'()*+,;:@/?]+=[\w\-.~%!$'()*+,;:@/?=]*"
_QUERY = re.compile(rf"{_PAIR}(?:&{_PAIR})*", re.ASCII)
_CONTENT_TYPE = "application/vnd.amazon.eventstream"


class Refused(FirstwordError):
    """An answer instead of a stream: `code` is the name of AWS's error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(code, message)
        self.status = status

    def body(self) -> bytes:
        """The answer's JSON."""
        content: dict[str, object] = {"Message": self.message, "ErrorCode": self.code}
        if self.code == "ModelError":
            content["OriginalStatusCode"] = self.status
        return json.dumps(content).encode()


@dataclass(frozen=True)
class Invocation:
    """A stream that may be opened; `target` is path and query of the container's WebSocket."""

    variant: str
    target: str


def invocation(request: Request, endpoints: Collection[str], variant: str) -> Invocation:
    """Read a request. No `endpoints` means that any name is known. Raises Refused."""
    route = _ROUTE.fullmatch(request.path)
    if route is None:
        raise Refused(404, "UnknownOperationException", f"there is nothing at {request.path}")
    if request.method != "POST":
        raise Refused(405, "UnknownOperationException", f"{request.method} is not POST")
    endpoint = unquote(route["endpoint"])
    _check("EndpointName", endpoint, _ENDPOINT, 63)
    if request.header("content-type") != _CONTENT_TYPE:
        raise _invalid(f"Content-Type must be {_CONTENT_TYPE}")
    if endpoints and endpoint not in endpoints:
        raise _invalid(f"Endpoint {endpoint} not found.")
    target = request.header("x-amzn-sagemaker-target-variant")
    if target is not None:
        _check("TargetVariant", target, _VARIANT, 63)
        if target != variant:
            raise _invalid(f"Variant {target} not found for the endpoint {endpoint}.")
    path = request.header("x-amzn-sagemaker-model-invocation-path")
    if path is not None:
        _check("ModelInvocationPath", path, _PATH, 100)
    query = request.header("x-amzn-sagemaker-model-query-string")
    if query is not None:
        _check("ModelQueryString", query, _QUERY, 2048)
    return Invocation(variant, f"/{path or DEFAULT_PATH}" + (f"?{query}" if query else ""))


def _check(name: str, value: str, pattern: re.Pattern[str], longest: int) -> None:
    if len(value) > longest:
        raise _invalid(f"{name} has {len(value)} characters, more than {longest}")
    if not pattern.fullmatch(value):
        raise _invalid(f"{name} must satisfy the pattern ^{pattern.pattern}$")


def _invalid(why: str) -> Refused:
    return Refused(400, "InputValidationError", why)
