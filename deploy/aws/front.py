"""What callers reach: a load balancer before the agent."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticloadbalancingv2 as elb
from constructs import Construct

from deploy.aws.network import Network
from deploy.aws.services import Service
from deploy.aws.settings import Deployment

IDLE = cdk.Duration.seconds(4000)
"""The longest there is: a caller may be silent on an open WebSocket."""
DRAIN = cdk.Duration.seconds(110)
"""Less than the task's time to stop."""


class Front(Construct):
    """With a certificate: HTTPS for everybody. Without: HTTP, for the VPC only."""

    def __init__(
        self, scope: Construct, made: Deployment, network: Network, agent: Service
    ) -> None:
        super().__init__(scope, "Front")
        public = bool(made.certificate)
        group = ec2.SecurityGroup(
            self, "Group", vpc=network.vpc, description="callers", allow_all_outbound=False
        )
        balancer = elb.ApplicationLoadBalancer(
            self,
            "Balancer",
            vpc=network.vpc,
            internet_facing=public,
            security_group=group,
            idle_timeout=IDLE,
            drop_invalid_header_fields=True,
        )
        port = 443 if public else 80
        peer = ec2.Peer.any_ipv4() if public else ec2.Peer.ipv4(network.vpc.vpc_cidr_block)
        group.add_ingress_rule(peer, ec2.Port.tcp(port), "callers")
        listener = balancer.add_listener(
            "Listener",
            port=port,
            protocol=elb.ApplicationProtocol.HTTPS if public else elb.ApplicationProtocol.HTTP,
            certificates=[elb.ListenerCertificate.from_arn(made.certificate)] if public else None,
            ssl_policy=elb.SslPolicy.RECOMMENDED_TLS if public else None,
            open=False,
        )
        listener.add_targets(
            "Agents",
            port=agent.port,
            protocol=elb.ApplicationProtocol.HTTP,
            targets=[agent.service],
            deregistration_delay=DRAIN,
            load_balancing_algorithm_type=(
                elb.TargetGroupLoadBalancingAlgorithmType.LEAST_OUTSTANDING_REQUESTS
            ),
            health_check=elb.HealthCheck(
                # Not /readyz: ECS replaces what is red here, and an agent that waits for Valkey
                # comes back by itself.
                path="/livez",
                interval=cdk.Duration.seconds(10),
                timeout=cdk.Duration.seconds(5),
                healthy_threshold_count=2,
                unhealthy_threshold_count=3,
            ),
        )
        self.url = f"{'https' if public else 'http'}://{balancer.load_balancer_dns_name}"
