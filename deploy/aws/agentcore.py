"""The agent in Bedrock AgentCore's managed runtime, instead of on ECS.

The image is for ARM64. The runtime takes no secrets by reference: CloudFormation puts the server's
URL into its environment, where whoever may read the runtime's description can read it.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_bedrockagentcore as agentcore
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from deploy.aws.network import Network
from deploy.aws.services import (
    MODEL_ACTIONS,
    OPENAI_KEY,
    agent_environment,
    model_arns,
    openai_key,
)
from deploy.aws.settings import Deployment


class ManagedAgent(Construct):
    """`runtime.attr_agent_runtime_arn` is what callers invoke."""

    def __init__(
        self,
        scope: Construct,
        made: Deployment,
        network: Network,
        image: ecr.IRepository,
        url: secretsmanager.Secret,
    ) -> None:
        super().__init__(scope, "ManagedAgent")
        role = self._role(made, image)
        key = openai_key(made, self)
        subnets = network.vpc.select_subnets(subnet_type=network.private.subnet_type)
        self.runtime = agentcore.CfnRuntime(
            self,
            "Runtime",
            agent_runtime_name=f"{made.name.replace('-', '_')}_agent",
            role_arn=role.role_arn,
            agent_runtime_artifact=agentcore.CfnRuntime.AgentRuntimeArtifactProperty(
                container_configuration=agentcore.CfnRuntime.ContainerConfigurationProperty(
                    container_uri=image.repository_uri_for_tag(made.image_tag)
                )
            ),
            network_configuration=agentcore.CfnRuntime.NetworkConfigurationProperty(
                network_mode="VPC",
                network_mode_config=agentcore.CfnRuntime.VpcConfigProperty(
                    security_groups=[network.agent.security_group_id], subnets=subnets.subnet_ids
                ),
            ),
            environment_variables={
                **agent_environment(made),
                "DOCKER_CONTAINER": "1",  # else its server listens where nobody reaches it
                "FIRSTWORD_REDIS_URL": url.secret_value.unsafe_unwrap(),  # a reference
                **({} if key is None else {OPENAI_KEY: key.secret_value.unsafe_unwrap()}),
            },
        )
        self.runtime.node.add_dependency(role.node.find_child("DefaultPolicy"))

    def _role(self, made: Deployment, image: ecr.IRepository) -> iam.Role:
        stack = cdk.Stack.of(self)
        ours = {
            "StringEquals": {"aws:SourceAccount": stack.account},
            "ArnLike": {
                "aws:SourceArn": stack.format_arn(
                    service="bedrock-agentcore",
                    resource="*",
                    arn_format=cdk.ArnFormat.NO_RESOURCE_NAME,
                )
            },
        }
        role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("bedrock-agentcore.amazonaws.com", conditions=ours),
            description="the agent in AgentCore: its image, its logs, its model",
        )
        image.grant_pull(role)
        logs = stack.format_arn(
            service="logs",
            resource="log-group",
            resource_name="/aws/bedrock-agentcore/runtimes/*",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["logs:CreateLogGroup", "logs:CreateLogStream", "logs:PutLogEvents"],
                resources=[logs],
            )
        )
        models = model_arns(made, stack)
        if models:
            role.add_to_policy(iam.PolicyStatement(actions=list(MODEL_ACTIONS), resources=models))
        return role
