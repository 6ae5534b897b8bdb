"""What is there before anything runs, and stays when all of it is gone: weights, images, logs."""

from __future__ import annotations

import hashlib

import aws_cdk as cdk
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from deploy.aws.settings import Deployment
from firstword.assets import load_manifest
from services.inference.kokoro_torch import pins

KEPT_IMAGES = 10
COLLECTOR = "collector"


def images(made: Deployment) -> tuple[str, ...]:
    """The images of a deployment, by the last part of their repositories' names."""
    agents = {"ecs": "agent", "agentcore": "agentcore"}
    return ("segmenter", "tts_gateway", "inference", agents[made.agent])


def weights_prefix(engine: str) -> str:
    """Where this version's weights for an engine lie in the bucket: other files have another place.

    The container checks each file against the sha256 in `firstword/assets.json`, and torch its
    checkpoint against `pins`; this name is made of those same sums, so that a change of weights is
    a change of the model.
    """
    manifest = load_manifest()
    files = [(file.sha256, file.name) for file in manifest.files]
    if engine == "torch":  # either of them beside the others
        files.append((pins.ORIGINAL_SHA256, pins.ORIGINAL))
        files.append((pins.DEQUANTISED_SHA256, pins.DEQUANTISED))
    sums = "\n".join(f"{sha256}  {name}" for sha256, name in files)
    return f"{manifest.version}-{hashlib.sha256(sums.encode()).hexdigest()[:12]}/"


class Base(cdk.Stack):
    """`firstword-base`: the weights' bucket, repositories of images, log groups.

    What went wrong last is in the logs, so they outlive what wrote them; and a stack that is made
    again finds them, where groups of its own that stayed would be in its way.
    """

    def __init__(self, scope: Construct, made: Deployment, **options: object) -> None:
        super().__init__(scope, f"{made.name}-base", **options)
        self.weights = s3.Bucket(
            self,
            "Weights",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            versioned=True,
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        self.repositories = {name: self._repository(made, name) for name in images(made)}
        ours = [name for name in images(made) if name in ("segmenter", "tts_gateway", "agent")]
        self.logs = {name: self._log_group(made, name) for name in (*ours, COLLECTOR)}
        place = self.weights.s3_url_for_object(weights_prefix(made.engine))
        cdk.CfnOutput(self, "WeightsPlace", value=place, description="upload the weights here")

    def _repository(self, made: Deployment, name: str) -> ecr.Repository:
        repository = ecr.Repository(
            self,
            f"Images-{name}",
            repository_name=f"{made.name}/{name}",
            image_scan_on_push=True,
            image_tag_mutability=ecr.TagMutability.IMMUTABLE,
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )
        repository.add_lifecycle_rule(max_image_count=KEPT_IMAGES)
        cdk.CfnOutput(self, f"Repository-{name}", value=repository.repository_uri)
        return repository

    def _log_group(self, made: Deployment, name: str) -> logs.LogGroup:
        return logs.LogGroup(
            self,
            f"Logs-{name}",
            log_group_name=f"/{made.name}/{name}",
            retention=_kept(made.log_days),
            removal_policy=cdk.RemovalPolicy.RETAIN,
        )


def _kept(days: int) -> logs.RetentionDays:
    """The shortest time that CloudWatch offers and that is not less."""
    offered = {
        1: "ONE_DAY",
        3: "THREE_DAYS",
        7: "ONE_WEEK",
        14: "TWO_WEEKS",
        30: "ONE_MONTH",
        90: "THREE_MONTHS",
        180: "SIX_MONTHS",
        365: "ONE_YEAR",
        731: "TWO_YEARS",
    }
    name = next((offered[each] for each in offered if each >= days), "INFINITE")
    return logs.RetentionDays[name]
