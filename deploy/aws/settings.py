"""Every choice of the deployment: `cdk deploy -c NAME=VALUE`, read and checked in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from firstword.errors import SettingsError
from firstword.settings import load, setting, table

AGENTS = ("ecs", "agentcore")


@dataclass(frozen=True, slots=True)
class Deployment:
    """Read with `read()`; names are those of the CDK context."""

    name: str = setting("firstword", "name", "prefix of stacks, endpoint, cluster and repositories")
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
        "onnx", "engine", "what computes in the container", choices=("onnx", "torch")
    )
    weights: str = setting(
        "bucket",
        "weights",
        "bucket: read from S3 at start, checked against their sha256; image: baked into the image",
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
        16, "partitions", "ingress partitions, for good", minimum=1, maximum=1024
    )
    segmenters: int = setting(2, "segmenters", "segmenter tasks at least", minimum=1)
    gateways: int = setting(2, "gateways", "gateway tasks at least", minimum=1)
    gateway_sessions: int = setting(500, "gateway_sessions", "sessions of one gateway", minimum=1)
    max_tasks: int = setting(8, "max_tasks", "tasks of one service at most", minimum=1)

    agent: str = setting("ecs", "agent", "where the agent runs", choices=AGENTS)
    agents: int = setting(2, "agents", "agent tasks at least, on ECS", minimum=1)
    agent_source: str = setting(
        "scripted",
        "agent_source",
        "who answers prompts",
        choices=("scripted", "bedrock", "strands"),
    )
    agent_model: str = setting("", "agent_model", "model id at Bedrock")
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


def read(context: Mapping[str, Any]) -> Deployment:
    """The choices in a CDK context. Raises SettingsError that names every problem."""
    known = {name for name, _, _ in table(Deployment)}
    texts = {name: str(value) for name, value in context.items() if name in known}
    made = load(Deployment, texts)
    problems = list(_problems(made))
    if problems:
        raise SettingsError(problems)
    return made


def _problems(made: Deployment) -> list[str]:
    """What does not go together."""
    rules = (
        (made.image_tag in ("", "latest"), "image_tag: give the tag of the images to run"),
        (
            made.max_instances < made.min_instances,
            f"max_instances={made.max_instances} is less than min_instances={made.min_instances}",
        ),
        (
            made.scale_in_sessions > made.target_sessions / 2,
            f"scale_in_sessions={made.scale_in_sessions:g} must be at most half of "
            f"target_sessions={made.target_sessions:g}: the instance would be missed at once",
        ),
        (
            made.agent == "ecs" and not made.tokens_secret,
            "tokens_secret: agent=ecs needs the secret that says who may come in",
        ),
        *(
            (bool(value) and not value.startswith("arn:"), f"{name}={value}: must be an ARN")
            for name, value in (
                ("tokens_secret", made.tokens_secret),
                ("certificate", made.certificate),
                ("alerts_topic", made.alerts_topic),
            )
        ),
        (
            bool(made.vpc_id) and not (made.account and made.region),
            "vpc_id: give account and region, too: an existing VPC has to be looked up",
        ),
        (
            made.agent_source != "scripted" and not made.agent_model,
            f"agent_model: agent_source={made.agent_source} needs a model",
        ),
        (
            made.max_tasks < max(made.segmenters, made.gateways, made.agents),
            f"max_tasks={made.max_tasks} is less than a service's tasks at least",
        ),
    )
    return [text for broken, text in rules if broken]
