"""What the SageMaker upstream decides: whom its URL names, what parts say, what an error tells."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstword.errors import SettingsError, UpstreamError
from firstword.session_protocol import MAX_SERVER_FRAME_BYTES
from services.tts_gateway import sagemaker_errors as errors
from services.tts_gateway.sagemaker_parts import Joiner, Part
from services.tts_gateway.sagemaker_target import MAX_AGE_S, Target, parse

# -- the URL --------------------------------------------------------------------------------------


def test_an_endpoint_alone_is_enough() -> None:
    assert parse("sagemaker://speech") == Target("speech")
    assert parse("sagemaker://speech/").max_age_s == MAX_AGE_S


def test_everything_can_be_said() -> None:
    url = (
        "sagemaker://speech-1?region=eu-west-1&variant=blue&path=v2/stream&query=a%3Db%26c%3D1"
        "&endpoint_uri=https://localhost:8443&ca=/etc/ca.pem&profile=dev&fips=true&max_age_s=60"
    )
    assert parse(url) == Target(
        endpoint="speech-1",
        region="eu-west-1",
        variant="blue",
        path="v2/stream",
        query="a=b&c=1",
        endpoint_uri="https://localhost:8443",
        ca="/etc/ca.pem",
        profile="dev",
        fips=True,
        max_age_s=60,
    )


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sagemaker://", "NAME-OF-THE-ENDPOINT"),
        ("sagemaker://a_b", "NAME-OF-THE-ENDPOINT"),
        ("sagemaker://" + "a" * 64, "NAME-OF-THE-ENDPOINT"),
        ("sagemaker://a/b", "NAME-OF-THE-ENDPOINT"),
        ("sagemaker://a#b", "NAME-OF-THE-ENDPOINT"),
        ("sagemaker://a?regoin=x", "no parameter 'regoin'"),
        ("sagemaker://a?region=x&region=y", "region stands there twice"),
        ("sagemaker://a?variant=-", "variant must be"),
        ("sagemaker://a?path=/b", "no slash at its start"),
        ("sagemaker://a?path=" + "b" * 101, "at most 100"),
        ("sagemaker://a?query=b", "k=v"),
        ("sagemaker://a?query=b%3D" + "c" * 2048, "at most 2048"),
        ("sagemaker://a?endpoint_uri=http://x:1", "https://host"),
        ("sagemaker://a?endpoint_uri=https://x/y", "https://host"),
        ("sagemaker://a?max_age_s=0", "from 1 to 1800"),
        ("sagemaker://a?max_age_s=1801", "from 1 to 1800"),
        ("sagemaker://a?max_age_s=nan", "from 1 to 1800"),
        ("sagemaker://a?max_age_s=long", "from 1 to 1800"),
        ("sagemaker://a?fips=yes", "true or false"),
    ],
)
def test_what_is_wrong_is_told_at_the_start(url: str, problem: str) -> None:
    with pytest.raises(SettingsError, match=problem) as raised:
        parse(url)
    assert "FIRSTWORD_UPSTREAM" in raised.value.message


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(SettingsError) as raised:
        parse("sagemaker://?fips=maybe&max_age_s=0&x=1")
    assert len(raised.value.problems) == 4


# -- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "frame"),
    [
        (Part(b'{"type":"pong"}', "UTF8", "COMPLETE"), ('{"type":"pong"}', True)),
        (Part(b"\1\2", "BINARY", "COMPLETE"), (b"\1\2", False)),
        (Part(b"{}", "BINARY"), (b"{}", False)),
        (Part(b"{}"), (b"{}", None)),
        (Part(b"{}", "OTHER"), (b"{}", None)),
        (Part(b"\xff", "UTF8"), (b"\xff", True)),
        (Part(b"", "BINARY", "COMPLETE"), (b"", False)),
    ],
)
def test_a_whole_part_is_a_frame(part: Part, frame: tuple[str | bytes, bool | None]) -> None:
    assert Joiner().add(part) == frame


@given(st.lists(st.binary(max_size=9), min_size=1), st.lists(st.binary(max_size=9), min_size=1))
def test_fragments_are_put_together_and_the_first_says_what_they_are(
    pieces: list[bytes], more: list[bytes]
) -> None:
    joiner = Joiner()
    for frame, first in ((pieces, "BINARY"), (more, "BINARY")):
        *heads, last = frame
        # Only the first fragment of a frame says of what kind it is.
        kinds = [first, *[None] * (len(frame) - 1)]
        for head, kind in zip(heads, kinds, strict=False):
            assert joiner.add(Part(head, kind or first, "PARTIAL")) is None
        assert joiner.add(Part(last, kinds[-1] or first, "COMPLETE")) == (b"".join(frame), False)


def test_the_kind_of_a_frame_is_that_of_its_first_fragment() -> None:
    joiner = Joiner()
    assert joiner.add(Part("Gruß".encode()[:4], "UTF8", "PARTIAL")) is None
    assert joiner.add(Part("Gruß".encode()[4:], "BINARY", "COMPLETE")) == ("Gruß", True)
    assert joiner.add(Part(b"\0\0", "BINARY", "COMPLETE")) == (b"\0\0", False)


def test_a_frame_in_fragments_has_an_end() -> None:
    joiner = Joiner()
    assert joiner.add(Part(bytes(MAX_SERVER_FRAME_BYTES), "BINARY", "PARTIAL")) is None
    with pytest.raises(UpstreamError, match="more than") as raised:
        joiner.add(Part(b"\0", "BINARY", "PARTIAL"))
    assert raised.value.retryable


# -- errors ---------------------------------------------------------------------------------------

TARGET = Target("speech", variant="blue")


@pytest.mark.parametrize(
    ("status", "name", "said", "code", "retryable", "remedy"),
    [
        (400, "InputValidationError", "", "upstream_rejected", False, "InService"),
        (404, "", "", "upstream_rejected", False, "variant blue in eu-west-1"),
        (403, "AccessDeniedException", "", "upstream_forbidden", False, errors.ACTION),
        (403, "InvalidSignatureException", "", "upstream_forbidden", False, "clock"),
        (403, "", "The security token is expired", "upstream_forbidden", False, "credentials"),
        (424, "ModelError", "", "upstream_refused", True, errors.LABEL),
        (429, "ThrottlingException", "", "upstream_throttled", True, "quota"),
        (500, "InternalServerError", "", "upstream_unavailable", True, "500 InternalServerError"),
        (503, "ServiceUnavailableError", "", "upstream_unavailable", True, "speech in eu-west-1"),
        (413, "", "", "upstream_rejected", False, "SageMaker answered 413 for"),
    ],
)
def test_a_refusal_says_what_to_do(
    status: int, name: str, said: str, code: str, retryable: bool, remedy: str
) -> None:
    error = errors.refused(TARGET, "eu-west-1", status, name, said)
    assert (error.code, error.retryable) == (code, retryable)
    assert remedy in error.message


def test_an_endpoint_without_variants_is_named_alone() -> None:
    error = errors.refused(Target("speech"), "eu-west-1", 400, "InputValidationError")
    assert "an endpoint speech in eu-west-1" in error.message


@pytest.mark.parametrize(
    ("error", "code", "retryable", "remedy"),
    [
        (errors.no_credentials("none"), "upstream_no_credentials", False, "task role"),
        (errors.no_credentials("x", retryable=True), "upstream_no_credentials", True, "(x)"),
        (errors.no_region(), "upstream_no_region", False, "?region="),
        (errors.unreachable("https://x", "refused"), "upstream_unreachable", True, "8443"),
        (errors.unanswered("https://x", 10), "upstream_unreachable", True, "certificate"),
        (errors.ended("reset"), "upstream_lost", True, "(reset)"),
    ],
)
def test_what_never_was_a_stream_says_what_to_do(
    error: UpstreamError, code: str, retryable: bool, remedy: str
) -> None:
    assert (error.code, error.retryable) == (code, retryable)
    assert remedy in error.message
