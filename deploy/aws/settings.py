"""Every choice of the deployment: `cdk deploy -c NAME=VALUE`, read and checked in one place."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from deploy.aws.environments import as_text, environment
from firstword.errors import SettingsError
from firstword.keys import DEFAULT_PARTITIONS, MAX_PARTITIONS
from firstword.settings import load, setting, table
from firstword.teardown import check_name
from services.agent.settings import SOURCES

AGENTS = ("ecs", "agentcore")


@dataclass(frozen=True, slots=True)
class Deployment:
    """Read with `read()`; names are those of the CDK context."""

    name: str = setting(
        "firstword",
        "name",
        "prefix of stacks, endpoint, cluster and repositories",
        check=check_name,
    )
    account: str = setting("", "account", "AWS account; needed with vpc_id")
    region: str = setting("", "region", "AWS region; needed with vpc_id")
    vpc_id: str = setting("", "vpc_id", "an existing VPC with private subnets; empty: a new one")
    nat_gateways: int = setting(
        1, "nat_gateways", "NAT gateways of a new VPC; 2 survive the loss of a zone", minimum=1
    )
    image_tag: str = setting("", "image_tag", "tag of the images to run; never `latest`")

    cache_node: str = setting("cache.m7g.large", "cache_node", "node type of Valkey")
    cache_replicas: int = setting(
        1, "cache_replicas", "replicas of Valkey; 0: its loss is every session's", minimum=0
    )
    snapshot_days: int = setting(
        0, "snapshot_days", "days that nightly snapshots of Valkey are kept; 0: none", minimum=0
    )

    endpoint_instance: str = setting(
        "ml.g5.xlarge", "endpoint_instance", "instance type of the SageMaker endpoint"
    )
    endpoint_ami: str = setting(
        "al2023-ami-sagemaker-inference-gpu-4-1",
        "endpoint_ami",
        "what runs the container; the older ones have no driver for CUDA 13. Empty: SageMaker's "
        "own choice, for CPU instances",
    )
    engine: str = setting(
        "torch",
        "engine",
        "what computes in the container: torch, for GPUs; onnx, for CPUs",
        choices=("onnx", "torch"),
    )
    inference_env: str = setting(
        "",
        "inference_env",
        "other settings of the container: `BATCH=everything PRECISION=half` (INFERENCE.md)",
    )
    weights: str = setting(
        "bucket",
        "weights",
        "bucket: read from S3 at start, checked against their sha256; image: baked into the image, "
        "for engine=onnx",
        choices=("bucket", "image"),
    )
    startup_s: int = setting(
        600,
        "startup_s",
        "seconds within which a container must answer /ping",
        minimum=60,
        maximum=3600,
    )
    min_instances: int = setting(1, "min_instances", "instances that always run", minimum=1)
    max_instances: int = setting(2, "max_instances", "instances at most", minimum=1)
    target_sessions: float = setting(
        8.0,
        "target_sessions",
        "open sessions per instance above which one is added (`firstword capacity`)",
        minimum=0.1,
    )
    scale_in_sessions: float = setting(
        4.0,
        "scale_in_sessions",
        "open sessions per instance below which, for a quarter of an hour, one is taken away",
        minimum=0,
    )

    partitions: int = setting(
        DEFAULT_PARTITIONS,
        "partitions",
        "ingress partitions, for good",
        minimum=1,
        maximum=MAX_PARTITIONS,
    )
    segmenters: int = setting(2, "segmenters", "segmenter tasks at least", minimum=1)
    gateways: int = setting(2, "gateways", "gateway tasks at least", minimum=1)
    gateway_sessions: int = setting(500, "gateway_sessions", "sessions of one gateway", minimum=1)
    segmenter_env: str = setting(
        "", "segmenter_env", "other settings of the segmenter: `VOICE=bf_emma STALL_S=2`"
    )
    gateway_env: str = setting(
        "", "gateway_env", "other settings of the gateway: `SESSION_IDLE_S=120 MAX_AHEAD_S=20`"
    )
    max_tasks: int = setting(8, "max_tasks", "tasks of one service at most", minimum=1)

    agent: str = setting("ecs", "agent", "where the agent runs", choices=AGENTS)
    agents: int = setting(2, "agents", "agent tasks at least, on ECS", minimum=1)
    agent_source: str = setting(
        "scripted",
        "agent_source",
        "who answers prompts",
        choices=SOURCES,
    )
    agent_model: str = setting(
        "", "agent_model", "model id at Bedrock; with agent_source=openai its name at the server"
    )
    agent_openai_url: str = setting(
        "",
        "agent_openai_url",
        "chat server of agent_source=openai, up to before /chat/completions; https, port 443",
    )
    agent_openai_secret: str = setting(
        "", "agent_openai_secret", "ARN of the secret that holds its key; empty: none is sent"
    )
    agent_env: str = setting(
        "", "agent_env", "other settings of the agent: `MAX_TOKENS=300 SYSTEM_PROMPT='Be brief.'`"
    )
    tokens_secret: str = setting(
        "",
        "tokens_secret",
        "ARN of the secret that holds FIRSTWORD_API_TOKENS; needed with agent=ecs",
    )
    certificate: str = setting(
        "",
        "certificate",
        "ARN of the certificate that callers are served with; empty: the load balancer is reached "
        "from inside the VPC only, without TLS",
    )

    collector_image: str = setting(
        "public.ecr.aws/aws-observability/aws-otel-collector:v0.40.0",
        "collector_image",
        "AWS's distribution of the OpenTelemetry collector",
    )
    log_days: int = setting(30, "log_days", "days that logs are kept", minimum=1)
    alerts_topic: str = setting(
        "", "alerts_topic", "ARN of the SNS topic that alerts go to; empty: nobody is told"
    )
    runbook_base: str = setting(
        "",
        "runbook_base",
        "where RUNBOOK.md can be opened, https://…: alerts link to it; empty: they name the file",
    )


def read(context: Mapping[str, Any]) -> Deployment:
    """The choices in a CDK context. Raises SettingsError that names every problem."""
    known = {name for name, _, _ in table(Deployment)}
    texts = {name: as_text(value) for name, value in context.items() if name in known}
    problems = list(_unknown(context.keys() - known, known))
    wrong: set[str] = set()
    for name, text in texts.items():
        try:
            load(Deployment, {name: text})
        except SettingsError as error:
            problems += error.problems
            wrong.add(name)
    made = load(Deployment, {name: text for name, text in texts.items() if name not in wrong})
    problems += [
        text for names, broken, text in _rules(made) if broken and not wrong & set(names.split())
    ]
    for service in ("inference", "segmenter", "gateway", "agent"):
        try:
            environment(service, getattr(made, f"{service}_env"))
        except SettingsError as error:
            problems += error.problems
    if problems:
        raise SettingsError(problems)
    return made


def has_gpu(instance: str) -> bool:
    """Whether instances of SageMaker of this type have GPUs."""
    return bool(re.match(r"ml\.(g|gr|p)\d", instance))


def _unknown(names: Set[str], known: Set[str]) -> Iterator[str]:
    """Choices that are misspelt. CDK's own keys are in the context, too, and look otherwise."""
    for name in sorted(names):
        close = difflib.get_close_matches(name.lower().replace("-", "_"), known, 1, cutoff=0.75)
        if close and ":" not in name and "/" not in name:
            yield f"{name}: there is no such choice; did you mean {close[0]}?"


def _rules(made: Deployment) -> Iterator[tuple[str, bool, str]]:
    """What does not go together: the choices it is about, whether that is so, and how to say it."""
    yield (
        "image_tag",
        made.image_tag in ("", "latest"),
        "image_tag: give the tag of the images to run",
    )
    yield from _endpoint(made)
    yield from _agent(made)
    yield (
        "vpc_id",
        bool(made.vpc_id) and not (made.account and made.region),
        "vpc_id: give account and region, too: an existing VPC has to be looked up",
    )
    yield (
        "max_tasks segmenters gateways agents",
        made.max_tasks < max(made.segmenters, made.gateways, made.agents),
        f"max_tasks={made.max_tasks} is less than a service's tasks at least",
    )
    arns = ("tokens_secret", "agent_openai_secret", "certificate", "alerts_topic")
    for name in arns:
        value: str = getattr(made, name)
        wrong = bool(value) and not value.startswith("arn:")
        yield name, wrong, f"{name}={value}: must be an ARN"
    yield (
        "runbook_base",
        not re.fullmatch(r"(https?://[^\s#\"\\]+)?", made.runbook_base),
        f"runbook_base={made.runbook_base}: must be an address, https://…, without #",
    )


def _endpoint(made: Deployment) -> Iterator[tuple[str, bool, str]]:
    instance, gpu = made.endpoint_instance, has_gpu(made.endpoint_instance)
    yield (
        "endpoint_instance",
        not instance.startswith("ml."),
        f"endpoint_instance={instance}: must be a type of SageMaker's, as ml.g5.xlarge",
    )
    yield (
        "endpoint_instance endpoint_ami",
        not gpu and "gpu" in made.endpoint_ami,
        f"endpoint_ami={made.endpoint_ami} is for GPUs, and {instance} has none: leave it empty "
        "(-c endpoint_ami=)",
    )
    yield (
        "endpoint_instance endpoint_ami",
        gpu and not made.endpoint_ami,
        f"endpoint_ami: {instance} has GPUs, and what SageMaker chooses itself has no driver for "
        "CUDA 13",
    )
    yield (
        "endpoint_instance engine",
        not gpu and made.engine == "torch",
        f"engine=torch is for GPUs, and {instance} has none: take engine=onnx",
    )
    yield (
        "engine weights",
        made.engine == "torch" and made.weights == "image",
        "weights=image is for engine=onnx only: no image is built with torch's weights in it",
    )
    yield (
        "min_instances max_instances",
        made.max_instances < made.min_instances,
        f"max_instances={made.max_instances} is less than min_instances={made.min_instances}",
    )
    yield (
        "scale_in_sessions target_sessions",
        made.scale_in_sessions > made.target_sessions / 2,
        f"scale_in_sessions={made.scale_in_sessions:g} must be at most half of "
        f"target_sessions={made.target_sessions:g}: the instance would be missed at once",
    )


def _agent(made: Deployment) -> Iterator[tuple[str, bool, str]]:
    server = urlsplit(made.agent_openai_url)
    openai = made.agent_source == "openai"
    yield (
        "agent tokens_secret",
        made.agent == "ecs" and not made.tokens_secret,
        "tokens_secret: agent=ecs needs the secret that says who may come in",
    )
    yield (
        "agent_source agent_model",
        made.agent_source != "scripted" and not made.agent_model,
        f"agent_model: agent_source={made.agent_source} needs a model",
    )
    yield (
        "agent_source agent_openai_url",
        openai and not (server.scheme == "https" and server.netloc.removesuffix(":443") != ""),
        "agent_openai_url: agent_source=openai needs its server, https://…/v1",
    )
    yield (
        "agent_source agent_openai_url",
        openai and server.scheme == "https" and ":" in server.netloc.removesuffix(":443"),
        f"agent_openai_url={made.agent_openai_url}: the agent may reach port 443 only, and nobody "
        "by name and password",
    )
    yield (
        "agent_source agent_openai_url agent_openai_secret",
        not openai and bool(made.agent_openai_url or made.agent_openai_secret),
        "agent_openai_url and agent_openai_secret are for agent_source=openai",
    )
