"""Takes a deployment on AWS (deploy/aws) away again, in the right order, and knows what stays.

Who speaks goes before what it speaks with: the agent, the endpoint, its configuration, its model,
the other services, and then the stack with all that is left. Weights, images, logs and snapshots
outlive the stack and go on costing; they are taken away only where that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from firstword.errors import FirstwordError

KEPT = ("weights", "images", "logs", "snapshots")
BY_THE_HOUR = "by the hour, whether anybody speaks or not"
BY_THE_MONTH = "by the gigabyte and month"
DELETES_AT_ONCE = 1000

_NAME = re.compile(r"[a-z](-?[a-z0-9])*")
_NAME_CHARS = 40

Client = Callable[[str], Any]
"""AWS's client of a service, by its name in boto3."""


class AwsError(FirstwordError):
    """AWS could not be asked, or refused; the message says what and why."""


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that is there. `remove` takes it away and returns when that is certain."""

    kind: str
    name: str
    costs: str
    """How it is paid for; '' where it costs nothing by itself."""
    remove: Callable[[], None]
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Deployment:
    """What is there of the deployment `name` (the CDK context's), asked of AWS."""

    name: str
    client: Client

    def running(self) -> list[Thing]:
        """What runs, in the order in which it is to go."""
        services = list(self._services())
        return [
            *self._runtimes(),
            *(each for each in services if each.name == "agent"),
            *self._endpoint(),
            *(each for each in services if each.name != "agent"),
            *self._stack(self.name, "network, Valkey, load balancer, metrics: " + BY_THE_HOUR),
        ]

    def staying(self) -> dict[str, list[Thing]]:
        """What outlives the stack, by the words of `KEPT`."""
        found = (self._buckets(), self._images(), self._logs(), self._snapshots())
        return {word: list(things) for word, things in zip(KEPT, found, strict=True)}

    def base(self) -> list[Thing]:
        """The stack of what stays: worth something only as long as that does."""
        return list(self._stack(f"{self.name}-base", ""))

    # -- what runs --------------------------------------------------------------------------------

    def _runtimes(self) -> Iterator[Thing]:
        """The agent in AgentCore. Where a region has none, nothing answers at its address."""
        client = self.client("bedrock-agentcore-control")
        wanted = f"{self.name.replace('-', '_')}_agent"
        try:
            pages = list(client.get_paginator("list_agent_runtimes").paginate())
        except Exception as error:
            if type(error).__name__ == "EndpointConnectionError":
                return
            raise
        for runtime in (each for page in pages for each in page["agentRuntimes"]):
            if runtime["agentRuntimeName"] == wanted:
                remove = partial(
                    client.delete_agent_runtime, agentRuntimeId=runtime["agentRuntimeId"]
                )
                yield Thing("agent runtime", wanted, "by the second while it is called", remove)

    def _services(self) -> Iterator[Thing]:
        client = self.client("ecs")
        try:
            pages = list(
                client.get_paginator("list_services").paginate(cluster=self.name, maxResults=10)
            )
        except client.exceptions.ClusterNotFoundException:
            return
        for arn in (each for page in pages for each in self._active(client, page["serviceArns"])):
            # By force: protected tasks and open sessions do not keep it.
            remove = partial(client.delete_service, cluster=self.name, service=arn, force=True)
            yield Thing("service", arn.rpartition("/")[2], BY_THE_HOUR, remove)

    def _active(self, client: Any, arns: Sequence[str]) -> list[str]:
        """Those that were not deleted already: ECS tells of them for a while."""
        if not arns:
            return []
        described = client.describe_services(cluster=self.name, services=arns)["services"]
        return [each["serviceArn"] for each in described if each["status"] == "ACTIVE"]

    def _endpoint(self) -> Iterator[Thing]:
        """The endpoint and, as it names them, its configuration and its models.

        Without the endpoint nothing names them: they cost nothing, and go with the stack.
        """
        client = self.client("sagemaker")
        name = f"{self.name}-tts"
        endpoint = _described(client.describe_endpoint, EndpointName=name)
        if endpoint is None:
            return
        yield Thing("endpoint", name, BY_THE_HOUR, partial(self._remove_endpoint, client, name))
        configuration = endpoint["EndpointConfigName"]
        described = _described(client.describe_endpoint_config, EndpointConfigName=configuration)
        if described is None:
            return
        remove = partial(client.delete_endpoint_config, EndpointConfigName=configuration)
        yield Thing("endpoint configuration", configuration, "", remove)
        for variant in described["ProductionVariants"]:
            model = variant["ModelName"]
            yield Thing("model", model, "", partial(client.delete_model, ModelName=model))

    @staticmethod
    def _remove_endpoint(client: Any, name: str) -> None:
        client.delete_endpoint(EndpointName=name)
        client.get_waiter("endpoint_deleted").wait(EndpointName=name)

    def _stack(self, name: str, costs: str) -> Iterator[Thing]:
        client = self.client("cloudformation")
        if _described(client.describe_stacks, StackName=name) is not None:
            yield Thing("stack", name, costs, partial(self._remove_stack, client, name))

    @staticmethod
    def _remove_stack(client: Any, name: str) -> None:
        client.delete_stack(StackName=name)
        client.get_waiter("stack_delete_complete").wait(StackName=name)

    # -- what stays -------------------------------------------------------------------------------

    def _buckets(self) -> Iterator[Thing]:
        client = self.client("s3")
        for bucket in client.list_buckets()["Buckets"]:
            name = bucket["Name"]
            if name.startswith(f"{self.name}-base-weights"):
                yield Thing("bucket", name, BY_THE_MONTH, partial(_remove_bucket, client, name))

    def _images(self) -> Iterator[Thing]:
        client = self.client("ecr")
        pages = client.get_paginator("describe_repositories").paginate()
        for repository in (each for page in pages for each in page["repositories"]):
            name = repository["repositoryName"]
            if not name.startswith(f"{self.name}/"):
                continue
            images = [
                image
                for page in client.get_paginator("describe_images").paginate(repositoryName=name)
                for image in page["imageDetails"]
            ]
            size = sum(image.get("imageSizeInBytes", 0) for image in images)
            remove = partial(client.delete_repository, repositoryName=name, force=True)
            detail = f"{len(images)} images, {size / 1e9:.1f} GB"
            yield Thing("repository", name, BY_THE_MONTH, remove, detail)

    def _logs(self) -> Iterator[Thing]:
        client = self.client("logs")
        endpoints = f"/aws/sagemaker/Endpoints/{self.name}-tts"
        beginnings = (
            f"/{self.name}/",
            endpoints,
            f"/aws/ecs/containerinsights/{self.name}/",
            f"/aws/bedrock-agentcore/runtimes/{self.name.replace('-', '_')}_agent-",
        )
        describe = client.get_paginator("describe_log_groups")
        for beginning in beginnings:
            for page in describe.paginate(logGroupNamePrefix=beginning):
                for group in page["logGroups"]:
                    name = group["logGroupName"]
                    if beginning == endpoints != name:
                        continue  # of another deployment, whose name begins with ours
                    detail = f"{group.get('storedBytes', 0) / 1e6:.1f} MB"
                    remove = partial(client.delete_log_group, logGroupName=name)
                    yield Thing("log group", name, BY_THE_MONTH, remove, detail)

    def _snapshots(self) -> Iterator[Thing]:
        client = self.client("elasticache")
        for page in client.get_paginator("describe_snapshots").paginate():
            for snapshot in page["Snapshots"]:
                if snapshot.get("ReplicationGroupId") == self.name:
                    name = snapshot["SnapshotName"]
                    remove = partial(client.delete_snapshot, SnapshotName=name)
                    yield Thing("snapshot", name, BY_THE_MONTH, remove)


def _described(describe: Callable[..., Any], **name: str) -> Any:
    """What AWS says of something; None if it says that it is not there."""
    try:
        return describe(**name)
    except Exception as error:
        answer = getattr(error, "response", {}).get("Error", {})
        missing = ("could not find", "does not exist", "not found")
        if answer.get("Code") == "ValidationException" or answer.get("Code") == "ValidationError":
            if any(words in str(answer.get("Message", "")).lower() for words in missing):
                return None
        raise


def _remove_bucket(client: Any, name: str) -> None:
    """Every version of everything in it, and then the bucket."""
    for page in client.get_paginator("list_object_versions").paginate(Bucket=name):
        objects = [
            {"Key": each["Key"], "VersionId": each["VersionId"]}
            for each in (*page.get("Versions", ()), *page.get("DeleteMarkers", ()))
        ]
        for first in range(0, len(objects), DELETES_AT_ONCE):
            some = objects[first : first + DELETES_AT_ONCE]
            answer = client.delete_objects(Bucket=name, Delete={"Objects": some, "Quiet": True})
            if answer.get("Errors"):
                refused = answer["Errors"][0]
                raise AwsError("aws", f"{name}/{refused['Key']}: {refused['Message']}")
    client.delete_bucket(Bucket=name)


def check_name(name: str) -> None:
    """Raises ValueError if no deployment can be called so: what AWS takes in the names of all that
    it is made of. An empty one would mean what is not ours, as the account's default cluster."""
    if not _NAME.fullmatch(name) or len(name) > _NAME_CHARS:
        raise ValueError(
            f"must be up to {_NAME_CHARS} of a to z, 0 to 9 and -, a letter first, and each - "
            "between two of the others"
        )


def clients(region: str) -> Client:
    """boto3's, with the credentials that AWS's tools find. Raises AwsError if it is not there."""
    try:
        import boto3
    except ImportError:
        told = "needs boto3: pip install 'firstword[aws]'"
        raise AwsError("not_installed", told) from None
    session = boto3.session.Session(region_name=region or None)
    if not session.region_name:
        raise AwsError("no_region", "no AWS region: give --region or set AWS_REGION")
    made: dict[str, Any] = {}

    def client(service: str) -> Any:
        if service not in made:
            made[service] = session.client(service)
        return made[service]

    return client


def in_words(error: Exception) -> AwsError | None:
    """AWS's errors as ours; None for what is no error of AWS."""
    if isinstance(error, AwsError):
        return error
    if not type(error).__module__.startswith("botocore"):
        return None
    return AwsError("aws", f"AWS: {error}")


def chosen(words: str) -> Sequence[str]:
    """`weights,logs` or `all` as words of `KEPT`. Raises ValueError."""
    named = [word.strip() for word in words.split(",") if word.strip()]
    if named == ["all"]:
        return KEPT
    unknown = [word for word in named if word not in KEPT]
    if unknown or not named:
        raise ValueError(f"must be all, or some of {', '.join(KEPT)} with commas between")
    return named
