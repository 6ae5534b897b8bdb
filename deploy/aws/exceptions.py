"""What the linters find and we leave, each with its reason. The tests allow nothing else."""

from __future__ import annotations

from collections.abc import Mapping

CFN_LINT: Mapping[str, str] = {
    "W3005": "CDK itself names dependencies that a reference already makes",
    "W3037": "it does not know sagemaker:InvokeEndpointWithBidirectionalStream, which exists: "
    "streams need it",
}

CDK_NAG: Mapping[tuple[str, str], str] = {
    (
        "AwsSolutions-S1",
        "Weights",
    ): "public weights, read by one role: who read them when is in CloudTrail",
    (
        "AwsSolutions-SMG4",
        "Cache",
    ): "a new password means a new URL in every service at once: a deployment changes it, not a "
    "function in the night",
    (
        "AwsSolutions-AEC4",
        "Cache/Valkey",
    ): "cache_replicas=0 is the choice of a deployment that may lose its sessions; the default has "
    "a replica in another zone",
    (
        "AwsSolutions-IAM5",
        "Endpoint/Role",
    ): "objects below one prefix, log groups of one endpoint, metrics of two namespaces; the token "
    "of ECR knows no resources",
    (
        "AwsSolutions-IAM5",
        "ExecutionRole",
    ): "only the token of ECR, which knows no resources",
    (
        "AwsSolutions-IAM5",
        "Observability/Task/TaskRole",
    ): "task definitions know no resources; the rest is held to one cluster by a condition",
    (
        "AwsSolutions-IAM5",
        "Service-tts_gateway/Task/TaskRole",
    ): "a task protects itself, and its id is not known before; held to one cluster",
    (
        "AwsSolutions-IAM5",
        "Service-agent/Task/TaskRole",
    ): "a model of AWS is the same in every region, and a profile chooses the region",
    (
        "AwsSolutions-IAM5",
        "ManagedAgent/Role",
    ): "log groups of AgentCore's runtimes, whose names hold an id; the token of ECR knows no "
    "resources; a profile chooses the model's region",
    (
        "AwsSolutions-ECS2",
        "Task",
    ): "settings; what is secret comes from Secrets Manager",
    (
        "AwsSolutions-EC23",
        "Front/Group",
    ): "with a certificate it is for everybody; without, the rule holds the VPC's range, which the "
    "linter cannot read",
    (
        "AwsSolutions-ELB2",
        "Front/Balancer",
    ): "calls are in the agent's own metrics and logs, which name no caller",
}
"""By rule and a part of the path of what it is about."""
