"""What went wrong with a SageMaker stream, in words that say what to do."""

from __future__ import annotations

from firstword.errors import UpstreamError
from services.tts_gateway.sagemaker_target import Target

ACTION = "sagemaker:InvokeEndpointWithBidirectionalStream"
LABEL = "com.amazonaws.sagemaker.capabilities.bidirectional-streaming=true"
FORBIDDEN = "upstream_forbidden"
_CLOCK_OR_KEY = ("signature", "expired", "token", "unrecognizedclient", "invalidclient")


def refused(target: Target, region: str, status: int, name: str, said: str = "") -> UpstreamError:
    """SageMaker answered instead of opening a stream: HTTP status, AWS's error name and message."""
    where = f"the endpoint {target.endpoint} in {region}"
    answer = f"SageMaker answered {status} {name}".rstrip()
    if status == 429:
        told = f"{where} is throttled ({answer}): ask for a higher quota, or for fewer streams"
        return UpstreamError("upstream_throttled", told, retryable=True)
    if status == 424:
        told = (
            f"the container of {where} did not take the connection ({answer}): it is full or "
            f"starting, or its image lacks the label {LABEL}; see the endpoint's log"
        )
        return UpstreamError("upstream_refused", told, retryable=True)
    if status >= 500:
        return UpstreamError("upstream_unavailable", f"{answer} for {where}", retryable=True)
    if status == 403:
        return _forbidden(target, region, answer, f"{name} {said}".lower())
    if status in (400, 404):
        variant = f" with a variant {target.variant}" if target.variant else ""
        told = (
            f"{answer}: is there an endpoint {target.endpoint}{variant} in {region} (the right "
            f"region and account), and is it InService?"
        )
        return UpstreamError("upstream_rejected", told)
    return UpstreamError("upstream_rejected", f"{answer} for {where}")


def _forbidden(target: Target, region: str, answer: str, words: str) -> UpstreamError:
    if any(word in words for word in _CLOCK_OR_KEY):
        told = (
            f"{answer}: the credentials are not valid, or the clock is wrong: look at the "
            f"gateway's credentials and at its time"
        )
    else:
        told = (
            f"{answer}: allow the gateway's role the action {ACTION} on the endpoint "
            f"{target.endpoint} in {region} (sagemaker:InvokeEndpoint is not enough)"
        )
    return UpstreamError(FORBIDDEN, told)


def no_credentials(why: str, *, retryable: bool = False) -> UpstreamError:
    """There are no credentials to sign with."""
    told = (
        f"no AWS credentials ({why}): give the gateway a task role, a profile or AWS_ACCESS_KEY_ID "
        f"and AWS_SECRET_ACCESS_KEY"
    )
    return UpstreamError("upstream_no_credentials", told, retryable=retryable)


def no_region() -> UpstreamError:
    """No region is configured."""
    told = "no AWS region: write it into the upstream's URL (?region=…) or set AWS_REGION"
    return UpstreamError("upstream_no_region", told)


def unreachable(uri: str, why: str) -> UpstreamError:
    """Nothing answers, or nothing that speaks HTTP/2."""
    told = (
        f"cannot reach SageMaker at {uri} ({why}): is the region right, and is the port open "
        f"(8443, not 443)?"
    )
    return UpstreamError("upstream_unreachable", told, retryable=True)


def unanswered(uri: str, seconds: float) -> UpstreamError:
    """There was no answer in time; an untrusted certificate looks the same."""
    return unreachable(uri, f"no answer in {seconds:g} s; or its certificate is not trusted")


def ended(why: str) -> UpstreamError:
    """The stream ended, but not by us."""
    told = f"the stream to the inference container was lost ({why})"
    return UpstreamError("upstream_lost", told, retryable=True)
