"""The VPC, and who may speak to whom in it."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from constructs import Construct

from deploy.aws.settings import Deployment

REDIS_PORT = 6379
STREAMS_PORT = 8443
"""SageMaker takes bidirectional streams here, not at 443."""


class Network(Construct):
    """Private subnets for everything; nothing but a load balancer is reached from outside."""

    def __init__(self, scope: Construct, made: Deployment) -> None:
        super().__init__(scope, "Network")
        self.vpc: ec2.IVpc
        if made.vpc_id:
            self.vpc = ec2.Vpc.from_lookup(self, "Vpc", vpc_id=made.vpc_id)
        else:
            self.vpc = self._new_vpc(made)
        self.private = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS)
        self.cache = self._group("CacheGroup", "Valkey: reached by the services only")
        self.segmenter = self._group("SegmenterGroup", "the segmenter")
        self.gateway = self._group("GatewayGroup", "the gateway")
        self.agent = self._group("AgentGroup", "the agent")
        self.collector = self._group("CollectorGroup", "the collector of metrics")
        services = (self.segmenter, self.gateway, self.agent)
        for group in services:
            self.cache.add_ingress_rule(group, ec2.Port.tcp(REDIS_PORT), "Valkey")
            group.add_egress_rule(self.cache, ec2.Port.tcp(REDIS_PORT), "Valkey")
        for group in (*services, self.collector):
            group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(443), "AWS")
        self.gateway.add_egress_rule(
            ec2.Peer.any_ipv4(), ec2.Port.tcp(STREAMS_PORT), "streams to SageMaker"
        )

    def let_scrape(self, group: ec2.SecurityGroup, port: int) -> None:
        """The collector reads a service's metrics."""
        group.add_ingress_rule(self.collector, ec2.Port.tcp(port), "metrics")
        self.collector.add_egress_rule(group, ec2.Port.tcp(port), "metrics")

    def _new_vpc(self, made: Deployment) -> ec2.Vpc:
        vpc = ec2.Vpc(self, "Vpc", max_azs=2, nat_gateways=made.nat_gateways)
        flows = logs.LogGroup(
            self,
            "Flows",
            retention=logs.RetentionDays.ONE_WEEK,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        vpc.add_flow_log(
            "Refused",
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(flows),
            traffic_type=ec2.FlowLogTrafficType.REJECT,
        )
        vpc.add_gateway_endpoint("S3", service=ec2.GatewayVpcEndpointAwsService.S3)
        return vpc

    def _group(self, id: str, about: str) -> ec2.SecurityGroup:
        return ec2.SecurityGroup(
            self, id, vpc=self.vpc, description=about, allow_all_outbound=False
        )
