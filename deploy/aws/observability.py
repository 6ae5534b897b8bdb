"""Metrics to Amazon Managed Service for Prometheus, with the rules of deploy/observability."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import yaml
from aws_cdk import aws_aps as aps
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from deploy.aws.network import Network
from deploy.aws.services import PORTS, log_driver
from deploy.aws.settings import Deployment

TARGETS = "/etc/ecs_sd_targets.yaml"
"""The collector writes what it found, and reads it again; its image has no /tmp."""
RUNBOOK = "docs/RUNBOOK.md"
RULES = Path(__file__).parents[1] / "observability"


class Observability(Construct):
    """A workspace, its rules, and one collector that finds the services' tasks by itself."""

    def __init__(
        self,
        scope: Construct,
        made: Deployment,
        network: Network,
        cluster: ecs.Cluster,
        logs_to: logs.ILogGroup,
    ) -> None:
        super().__init__(scope, "Observability")
        stack = cdk.Stack.of(self)
        self.workspace = aps.CfnWorkspace(
            self, "Workspace", alias=made.name, alert_manager_definition=_alerting(made, stack)
        )
        for name in ("recording", "alerts"):
            aps.CfnRuleGroupsNamespace(
                self,
                f"Rules-{name}",
                name=f"{made.name}-{name}",
                workspace=self.workspace.attr_arn,
                data=_rules(name, made.runbook_base),
            )
        task = ecs.FargateTaskDefinition(
            self, "Task", family=f"{made.name}-collector", cpu=256, memory_limit_mib=512
        )
        self._permit(task, cluster)
        task.add_container(
            "collector",
            image=ecs.ContainerImage.from_registry(made.collector_image),
            environment={"AOT_CONFIG_CONTENT": self._configuration(made, stack)},
            logging=log_driver(logs_to, "collector"),
            stop_timeout=cdk.Duration.seconds(30),
            user="0",  # else it cannot write there
        )
        self.service = ecs.FargateService(
            self,
            "Service",
            cluster=cluster,
            service_name="collector",
            task_definition=task,
            desired_count=1,
            security_groups=[network.collector],
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            min_healthy_percent=0,  # two would write every sample twice
            max_healthy_percent=100,
            circuit_breaker=ecs.DeploymentCircuitBreaker(enable=True, rollback=True),
        )

    def _permit(self, task: ecs.FargateTaskDefinition, cluster: ecs.Cluster) -> None:
        task.add_to_task_role_policy(
            iam.PolicyStatement(actions=["aps:RemoteWrite"], resources=[self.workspace.attr_arn])
        )
        task.add_to_task_role_policy(
            iam.PolicyStatement(
                actions=[
                    "ecs:DescribeServices",
                    "ecs:DescribeTasks",
                    "ecs:ListServices",
                    "ecs:ListTasks",
                ],
                resources=["*"],
                conditions={"ArnEquals": {"ecs:cluster": cluster.cluster_arn}},
            )
        )
        task.add_to_task_role_policy(
            iam.PolicyStatement(
                actions=["ecs:DescribeTaskDefinition"],
                resources=["*"],  # knows no resources
            )
        )

    def _configuration(self, made: Deployment, stack: cdk.Stack) -> str:
        """The collector's own: it finds tasks, reads /metrics and writes to the workspace."""
        services = [
            {"name_pattern": f"^{name}$", "metrics_ports": [port], "job_name": _label(name)}
            for name, port in PORTS.items()
        ]
        relabel = [
            {"source_labels": ["prometheus_job"], "target_label": "service"},
            {
                "source_labels": ["__meta_ecs_task_definition_family", "__address__"],
                "target_label": "instance",
                "separator": "@",
            },
        ]
        wanted = {
            "extensions": {
                "sigv4auth": {"region": stack.region, "service": "aps"},
                "ecs_observer": {
                    "cluster_name": made.name,
                    "cluster_region": stack.region,
                    "refresh_interval": "15s",
                    "result_file": TARGETS,
                    "job_label_name": "prometheus_job",
                    "services": services,
                },
            },
            "receivers": {
                "prometheus": {
                    "config": {
                        "global": {"scrape_interval": "15s"},
                        "scrape_configs": [
                            {
                                "job_name": "firstword",
                                "file_sd_configs": [{"files": [TARGETS]}],
                                "relabel_configs": relabel,
                            }
                        ],
                    }
                }
            },
            "exporters": {
                "prometheusremotewrite": {
                    "endpoint": f"{self.workspace.attr_prometheus_endpoint}api/v1/remote_write",
                    "auth": {"authenticator": "sigv4auth"},
                    "resource_to_telemetry_conversion": {"enabled": False},
                }
            },
            "service": {
                "extensions": ["ecs_observer", "sigv4auth"],
                "pipelines": {
                    "metrics": {
                        "receivers": ["prometheus"],
                        "exporters": ["prometheusremotewrite"],
                    }
                },
            },
        }
        return yaml.safe_dump(wanted, sort_keys=False)


def _rules(name: str, runbook: str) -> str:
    """A file of rules, whose alerts lead to where the runbook can be opened."""
    text = (RULES / f"{name}.yml").read_text(encoding="utf-8")
    return text.replace(f"runbook_url: {RUNBOOK}", f"runbook_url: {runbook or RUNBOOK}")


def _label(service: str) -> str:
    """What rules and dashboards call it."""
    return "gateway" if service == "tts_gateway" else service


def _alerting(made: Deployment, stack: cdk.Stack) -> str | None:
    """Alerts go to the topic, those that wake somebody marked so."""
    if not made.alerts_topic:
        return None
    receiver = {
        "topic_arn": made.alerts_topic,
        "sigv4": {"region": stack.region},
        "attributes": {"severity": "{{ .CommonLabels.severity }}"},
    }
    manager = {
        "route": {"receiver": "topic", "group_by": ["alertname", "service"]},
        "receivers": [{"name": "topic", "sns_configs": [receiver]}],
    }
    return yaml.safe_dump({"alertmanager_config": yaml.safe_dump(manager)})
