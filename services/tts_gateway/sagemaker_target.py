"""Which SageMaker endpoint an upstream's URL names: `sagemaker://endpoint?region=eu-west-1`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from firstword.errors import SettingsError

SCHEME = "sagemaker"
MAX_AGE_S = 1740.0
"""SageMaker ends a stream after 30 minutes; a minute is for its last sentence."""

_NAME = re.compile(r"[A-Za-z0-9](?:-*[A-Za-z0-9])*")
_PATH = re.compile(r"[A-Za-z0-9\-._]+(?:/[A-Za-z0-9\-._]+)*")
_PAIRS = re.compile(r"[^=&\s]+=[^=&\s]*(?:&[^=&\s]+=[^=&\s]*)*")
_KNOWN = ("region", "variant", "path", "query", "endpoint_uri", "ca", "profile", "fips")
_PARAMETERS = (*_KNOWN, "max_age_s")


@dataclass(frozen=True, slots=True)
class Target:
    """One endpoint, and how to reach it. An empty string means AWS's or the environment's value."""

    endpoint: str
    region: str = ""
    variant: str = ""
    path: str = ""
    """Path of the container's WebSocket, without a leading slash."""
    query: str = ""
    """Query of the container's WebSocket: `k=v&k=v`."""
    endpoint_uri: str = ""
    """Address to use instead of AWS's own for the region: an emulator, a VPC endpoint."""
    ca: str = ""
    """PEM file of the certificates to trust instead of the system's."""
    profile: str = ""
    """Profile of AWS's configuration files: credentials and region."""
    fips: bool = False
    max_age_s: float = MAX_AGE_S
    """After how many seconds at most a stream is replaced."""


def parse(url: str) -> Target:
    """Read the setting. Raises SettingsError that names each problem."""
    parts = urlsplit(url)
    pairs = parse_qsl(parts.query, keep_blank_values=True)
    given = dict(pairs)
    problems = [f"there is no parameter {name!r}" for name in given if name not in _PARAMETERS]
    problems += [f"{name} stands there twice" for name in given if _count(pairs, name) > 1]
    if not _is_name(parts.netloc) or parts.path not in ("", "/") or parts.fragment:
        problems.append("write sagemaker://NAME-OF-THE-ENDPOINT?region=REGION")
    if given.get("variant") and not _is_name(given["variant"]):
        problems.append("variant must be the name of a production variant")
    problems += _address_problems(given)
    try:
        max_age_s = float(given.get("max_age_s", MAX_AGE_S))
    except ValueError:
        max_age_s = 0.0
    if not 1 <= max_age_s <= 1800:
        problems.append("max_age_s must be seconds from 1 to 1800, SageMaker's limit")
    if given.get("fips", "false") not in ("true", "false"):
        problems.append("fips must be true or false")
    if problems:
        raise SettingsError([f"FIRSTWORD_UPSTREAM={url!r}: {problem}" for problem in problems])
    return Target(
        endpoint=parts.netloc,
        max_age_s=max_age_s,
        fips=given.get("fips") == "true",
        **{name: given[name] for name in _KNOWN if name in given and name != "fips"},
    )


def _count(pairs: list[tuple[str, str]], name: str) -> int:
    return sum(name == other for other, _ in pairs)


def _is_name(text: str) -> bool:
    return len(text) <= 63 and _NAME.fullmatch(text) is not None


def _address_problems(given: Mapping[str, str]) -> list[str]:
    problems = []
    path = given.get("path", "")
    if path and (len(path) > 100 or not _PATH.fullmatch(path)):
        problems.append("path must be like a/b, at most 100 characters, no slash at its start")
    query = given.get("query", "")
    if query and (len(query) > 2048 or not _PAIRS.fullmatch(query)):
        problems.append("query must be like k=v&k=v, percent-encoded, at most 2048 characters")
    uri = given.get("endpoint_uri", "")
    if uri and not re.fullmatch(r"https://[^/?#\s]+/?", uri):
        problems.append("endpoint_uri must be like https://host:8443")
    return problems
