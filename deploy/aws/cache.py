"""Valkey, on nodes of its own: the streams between the services.

Serverless would do, too, but deletes what has a time to live when it is full; nodes can be told to
refuse instead (`noeviction`), which publishers understand.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_elasticache as elasticache
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from deploy.aws.network import REDIS_PORT, Network
from deploy.aws.settings import Deployment

FAMILY = "valkey8"
VERSION = "8.0"


class Cache(Construct):
    """`url` is the secret that holds FIRSTWORD_REDIS_URL, password and all."""

    def __init__(self, scope: Construct, made: Deployment, network: Network) -> None:
        super().__init__(scope, "Cache")
        password = secretsmanager.Secret(
            self,
            "Password",
            description="of Valkey",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                exclude_punctuation=True, password_length=64
            ),
        )
        parameters = elasticache.CfnParameterGroup(
            self,
            "Parameters",
            cache_parameter_group_family=FAMILY,
            description="refuses to write when full, and never deletes a session that speaks",
            properties={"maxmemory-policy": "noeviction"},
        )
        subnets = elasticache.CfnSubnetGroup(
            self,
            "Subnets",
            description="private subnets",
            subnet_ids=network.vpc.select_subnets(
                subnet_type=network.private.subnet_type
            ).subnet_ids,
        )
        spread = made.cache_replicas > 0
        self.group = elasticache.CfnReplicationGroup(
            self,
            "Valkey",
            replication_group_id=made.name,  # its snapshots are found by it
            replication_group_description=f"{made.name}: text and audio streams",
            engine="valkey",
            engine_version=VERSION,
            cache_node_type=made.cache_node,
            cache_parameter_group_name=parameters.ref,
            cache_subnet_group_name=subnets.ref,
            security_group_ids=[network.cache.security_group_id],
            num_cache_clusters=1 + made.cache_replicas,
            automatic_failover_enabled=spread,
            multi_az_enabled=spread,
            transit_encryption_enabled=True,
            at_rest_encryption_enabled=True,
            auth_token=password.secret_value.unsafe_unwrap(),  # a reference, resolved by AWS
            port=REDIS_PORT,
            snapshot_retention_limit=made.snapshot_days,
        )
        self.url = secretsmanager.Secret(
            self,
            "Url",
            description="FIRSTWORD_REDIS_URL of the services",
            secret_string_value=cdk.SecretValue.unsafe_plain_text(
                cdk.Fn.join(
                    "",
                    [
                        "rediss://:",
                        password.secret_value.unsafe_unwrap(),
                        "@",
                        self.group.attr_primary_end_point_address,
                        f":{REDIS_PORT}",
                    ],
                )
            ),
        )
