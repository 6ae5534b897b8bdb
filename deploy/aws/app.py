"""The deployment on AWS: `cdk deploy`, in deploy/aws. docs/DEPLOY.md has it in order.

Two stacks: what stays (weights, images, logs), and what runs. In the second the endpoint is there
before the gateway and the agent, and they go before it does.
"""

from __future__ import annotations

import sys
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from deploy.aws.agentcore import ManagedAgent
from deploy.aws.base import COLLECTOR, Base
from deploy.aws.cache import Cache
from deploy.aws.endpoint import Endpoint
from deploy.aws.front import Front
from deploy.aws.network import Network
from deploy.aws.observability import Observability
from deploy.aws.services import (
    PORTS,
    Part,
    Service,
    agent_part,
    gateway_part,
    model_arns,
    openai_key,
    segmenter_part,
)
from deploy.aws.settings import Deployment, read
from firstword.errors import SettingsError


class Firstword(cdk.Stack):
    """`firstword`: everything that runs, and costs by the hour."""

    def __init__(self, scope: Construct, made: Deployment, base: Base, **options: Any) -> None:
        super().__init__(scope, made.name, **options)
        self._made = made
        self._base = base
        self._network = Network(self, made)
        self._cache = Cache(self, made, self._network)
        self._endpoint = Endpoint(self, made, base.weights, base.repositories["inference"])
        self._cluster = ecs.Cluster(
            self,
            "Cluster",
            cluster_name=made.name,
            vpc=self._network.vpc,
            container_insights_v2=ecs.ContainerInsights.ENABLED,
            default_cloud_map_namespace=ecs.CloudMapNamespaceOptions(
                name=f"{made.name}.local", use_for_service_connect=True
            ),
        )
        url = self._cache.url
        self._run(segmenter_part(made, self._network.segmenter, url))
        gateway = self._run(self._gateway(url))
        gateway.node.add_dependency(self._endpoint)
        agent = self._agent(url)
        agent.node.add_dependency(self._endpoint)
        watching = Observability(self, made, self._network, self._cluster, base.logs[COLLECTOR])
        self._tell("Upstream", self._endpoint.upstream, "firstword doctor --upstream")
        self._tell("RedisUrlSecret", url.secret_arn, "its value: firstword doctor --redis")
        self._tell("Prometheus", watching.workspace.attr_prometheus_endpoint, "for Grafana")

    def _run(self, part: Part) -> Service:
        repository = self._base.repositories[part.name]
        service = Service(
            self, self._made, self._cluster, repository, self._base.logs[part.name], part
        )
        self._network.let_scrape(part.group, PORTS[part.name])
        return service

    def _gateway(self, url: secretsmanager.ISecret) -> Part:
        tasks = self.format_arn(
            service="ecs", resource="task", resource_name=f"{self._made.name}/*"
        )
        endpoint = self._endpoint
        group = self._network.gateway
        return gateway_part(self._made, group, url, endpoint.upstream, endpoint.arn, tasks)

    def _agent(self, url: secretsmanager.Secret) -> Construct:
        """On ECS behind a load balancer, or in AgentCore."""
        made = self._made
        if made.agent == "agentcore":
            image = self._base.repositories["agentcore"]
            managed = ManagedAgent(self, made, self._network, image, url)
            self._tell(
                "AgentRuntime", managed.runtime.attr_agent_runtime_arn, "what callers invoke"
            )
            return managed
        tokens = secretsmanager.Secret.from_secret_complete_arn(self, "Tokens", made.tokens_secret)
        models = model_arns(made, self)
        agent = self._run(
            agent_part(made, self._network.agent, url, tokens, openai_key(made, self), models)
        )
        front = Front(self, made, self._network, agent)
        self._tell("AgentUrl", front.url, "what callers and the page reach")
        return agent

    def _tell(self, name: str, value: str, about: str) -> None:
        cdk.CfnOutput(self, name, value=value, description=about)


def build(app: cdk.App, made: Deployment) -> tuple[Base, Firstword]:
    """Both stacks in `app`."""
    environment = None
    if made.account or made.region:
        environment = cdk.Environment(
            account=made.account or cdk.Aws.ACCOUNT_ID, region=made.region or cdk.Aws.REGION
        )
    base = Base(app, made, env=environment)
    stack = Firstword(app, made, base, env=environment)
    cdk.Tags.of(app).add("application", made.name)
    return base, stack


def main() -> int:
    """What `cdk` runs; wrong choices are told, all at once."""
    app = cdk.App()
    try:
        made = read(app.node.get_all_context())
    except SettingsError as error:
        sys.stderr.write("".join(f"firstword: {problem}\n" for problem in error.problems))
        return 2
    build(app, made)
    app.synth()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
