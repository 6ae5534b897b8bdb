"""The services on ECS (Fargate), each with a role that may do what it does and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from deploy.aws.environments import environment as variables
from deploy.aws.settings import Deployment

ANYWHERE = "0.0.0.0"  # noqa: S104 - a task's only address; security groups decide who reaches it
CPU_TARGET = 60
LOG_BUFFER = cdk.Size.mebibytes(25)
PORTS: Mapping[str, int] = {"segmenter": 9101, "tts_gateway": 9102, "agent": 8000}


@dataclass(frozen=True, slots=True)
class Part:
    """What is particular of one service."""

    name: str
    tasks: int
    group: ec2.SecurityGroup
    environment: Mapping[str, str]
    secrets: Mapping[str, secretsmanager.ISecret]
    cpu: int = 512
    memory_mib: int = 1024
    stop_s: int = 60
    """From SIGTERM to SIGKILL; Fargate allows 120."""
    actions: Mapping[str, list[str]] = field(default_factory=dict)
    """What its role may do: resource -> actions."""
    called_as: str = ""
    """Its name in Service Connect, if others call it."""


class Service(Construct):
    """One service: task definition, role, scaling by CPU."""

    def __init__(
        self,
        scope: Construct,
        made: Deployment,
        cluster: ecs.Cluster,
        repository: ecr.IRepository,
        group: logs.ILogGroup,
        part: Part,
    ) -> None:
        super().__init__(scope, f"Service-{part.name}")
        self.port = PORTS[part.name]
        self.logs = group
        self.task = self._task(made, repository, part)
        for resource, actions in part.actions.items():
            self.task.add_to_task_role_policy(
                iam.PolicyStatement(actions=actions, resources=[resource])
            )
        self.service = ecs.FargateService(
            self,
            "Service",
            cluster=cluster,
            service_name=part.name,
            task_definition=self.task,
            desired_count=part.tasks,
            security_groups=[part.group],
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            min_healthy_percent=100,
            max_healthy_percent=200,  # protected tasks stay; the new ones need room beside them
            circuit_breaker=ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
            availability_zone_rebalancing=ecs.AvailabilityZoneRebalancing.DISABLED,
            service_connect_configuration=self._connect(part),
        )
        scaled = self.service.auto_scale_task_count(
            min_capacity=part.tasks, max_capacity=made.max_tasks
        )
        scaled.scale_on_cpu_utilization(
            "Cpu",
            target_utilization_percent=CPU_TARGET,
            scale_in_cooldown=cdk.Duration.minutes(10),
            scale_out_cooldown=cdk.Duration.minutes(1),
        )

    def _task(
        self, made: Deployment, repository: ecr.IRepository, part: Part
    ) -> ecs.FargateTaskDefinition:
        task = ecs.FargateTaskDefinition(
            self,
            "Task",
            family=f"{made.name}-{part.name}",
            cpu=part.cpu,
            memory_limit_mib=part.memory_mib,
            volumes=[ecs.Volume(name="tmp")],
        )
        container = task.add_container(
            part.name,
            image=ecs.ContainerImage.from_ecr_repository(repository, made.image_tag),
            environment={"FIRSTWORD_LOG_LEVEL": "INFO", **part.environment},
            secrets={
                name: ecs.Secret.from_secrets_manager(secret)
                for name, secret in part.secrets.items()
            },
            port_mappings=[
                ecs.PortMapping(
                    container_port=self.port, name=part.name, app_protocol=ecs.AppProtocol.http
                )
            ],
            health_check=health_check(self.port),
            logging=log_driver(self.logs, part.name),
            stop_timeout=cdk.Duration.seconds(part.stop_s),
            readonly_root_filesystem=True,
        )
        container.add_mount_points(
            ecs.MountPoint(container_path="/tmp", source_volume="tmp", read_only=False)  # noqa: S108
        )
        return task

    def _connect(self, part: Part) -> ecs.ServiceConnectProps | None:
        """Who is called by others is known by name; a request may take as long as a call does."""
        if not part.called_as:
            return None
        return ecs.ServiceConnectProps(
            services=[
                ecs.ServiceConnectService(
                    port_mapping_name=part.name,
                    discovery_name=part.called_as,
                    dns_name=part.called_as,
                    port=self.port,
                    idle_timeout=cdk.Duration.hours(1),
                    per_request_timeout=cdk.Duration.seconds(0),
                )
            ],
            log_driver=log_driver(self.logs, f"{part.name}-connect"),
        )


def segmenter_part(made: Deployment, group: ec2.SecurityGroup, url: secretsmanager.ISecret) -> Part:
    """Speaks to Valkey and to nobody of AWS."""
    return Part(
        "segmenter",
        made.segmenters,
        group,
        {
            "FIRSTWORD_SEGMENTER_HOST": ANYWHERE,
            "FIRSTWORD_PARTITIONS": str(made.partitions),
            **variables("segmenter", made.segmenter_env),
        },
        {"FIRSTWORD_REDIS_URL": url},
    )


def gateway_part(
    made: Deployment,
    group: ec2.SecurityGroup,
    url: secretsmanager.ISecret,
    upstream: str,
    endpoint: str,
    tasks: str,
) -> Part:
    """Opens streams to the endpoint, and keeps its task from being scaled in while it has sessions.

    `endpoint` and `tasks` are the ARNs of the endpoint and of the cluster's tasks.
    """
    return Part(
        "tts_gateway",
        made.gateways,
        group,
        {
            "FIRSTWORD_GATEWAY_HOST": ANYWHERE,
            "FIRSTWORD_GATEWAY_MAX_SESSIONS": str(made.gateway_sessions),
            "FIRSTWORD_UPSTREAM": upstream,
            **variables("gateway", made.gateway_env),
        },
        {"FIRSTWORD_REDIS_URL": url},
        cpu=1024,
        memory_mib=2048,
        stop_s=120,  # it hands over between sentences, within 100 s
        actions={
            # Streams have an action of their own; the other one is for `firstword doctor` and for
            # batch requests from within the task.
            endpoint: [
                "sagemaker:InvokeEndpoint",
                "sagemaker:InvokeEndpointWithBidirectionalStream",
            ],
            tasks: ["ecs:GetTaskProtection", "ecs:UpdateTaskProtection"],
        },
    )


def agent_part(
    made: Deployment,
    group: ec2.SecurityGroup,
    url: secretsmanager.ISecret,
    tokens: secretsmanager.ISecret,
    key: secretsmanager.ISecret | None,
    models: list[str],
) -> Part:
    """Serves callers. `models` are the ARNs of what it may have answer; `key` is of a chat server,
    if that has one."""
    return Part(
        "agent",
        made.agents,
        group,
        {"FIRSTWORD_AGENT_HOST": ANYWHERE, **agent_environment(made)},
        {
            "FIRSTWORD_REDIS_URL": url,
            "FIRSTWORD_API_TOKENS": tokens,
            **({} if key is None else {OPENAI_KEY: key}),
        },
        stop_s=120,
        actions={model: list(MODEL_ACTIONS) for model in models},
        called_as="agent",
    )


OPENAI_KEY = "FIRSTWORD_AGENT_OPENAI_KEY"
MODEL_ACTIONS = ("bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream")


def agent_environment(made: Deployment) -> dict[str, str]:
    """What the agent is told, wherever it runs."""
    server = {"FIRSTWORD_AGENT_OPENAI_URL": made.agent_openai_url}
    return {
        "FIRSTWORD_AGENT_SOURCE": made.agent_source,
        "FIRSTWORD_AGENT_MODEL": made.agent_model,
        **(server if made.agent_source == "openai" else {}),
        **variables("agent", made.agent_env),
    }


def openai_key(made: Deployment, scope: Construct) -> secretsmanager.ISecret | None:
    """The secret that holds the chat server's key, if there is one."""
    if not made.agent_openai_secret:
        return None
    return secretsmanager.Secret.from_secret_complete_arn(
        scope, "OpenaiKey", made.agent_openai_secret
    )


def model_arns(made: Deployment, stack: cdk.Stack) -> list[str]:
    """What the agent's model id stands for: a model, or a profile over several regions."""
    if made.agent_source in ("scripted", "openai"):
        return []
    model = made.agent_model.split(".", 1)
    across = model[0] in ("us", "eu", "apac", "global") and len(model) == 2
    base = model[1] if across else made.agent_model
    arns = [f"arn:{stack.partition}:bedrock:*::foundation-model/{base}"]
    if across:
        arns.append(
            stack.format_arn(
                service="bedrock", resource="inference-profile", resource_name=made.agent_model
            )
        )
    return arns


def log_driver(group: logs.ILogGroup, prefix: str) -> ecs.LogDriver:
    """A service that speaks must not wait for its log; the buffer holds minutes of it."""
    return ecs.LogDrivers.aws_logs(
        log_group=group,
        stream_prefix=prefix,
        mode=ecs.AwsLogDriverMode.NON_BLOCKING,
        max_buffer_size=LOG_BUFFER,
    )


def health_check(port: int) -> ecs.HealthCheck:
    """ECS ignores the image's own. A process whose loop stands still for 45 s is replaced."""
    look = f"import urllib.request as r; r.urlopen('http://127.0.0.1:{port}/livez', timeout=4)"
    return ecs.HealthCheck(
        command=["CMD", "python", "-c", look],
        interval=cdk.Duration.seconds(15),
        timeout=cdk.Duration.seconds(5),
        retries=3,
        start_period=cdk.Duration.seconds(30),
    )
