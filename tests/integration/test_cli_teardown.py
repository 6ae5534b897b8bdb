"""`firstword teardown` before moto's AWS, with a double of CloudFormation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from firstword import teardown
from firstword.cli.app import parser
from firstword.cli.console import Console
from firstword.cli.teardown import take_away
from firstword.errors import FirstwordError
from firstword.teardown import KEPT, Client, Deployment

boto3 = pytest.importorskip("boto3", reason="pip install 'firstword[aws]'")
moto = pytest.importorskip("moto", reason="pip install moto")

Capture = pytest.CaptureFixture[str]
REGION = "eu-west-1"
ROLE = "arn:aws:iam::123456789012:role/one"
BUCKET = "firstword-base-weights79dee8ef-abc"


@pytest.fixture
def stacks() -> Any:
    from tests.doubles.cloudformation import CloudFormation

    return CloudFormation("firstword", "firstword-base", "other")


@pytest.fixture
def aws(stacks: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    """An account in which nothing is yet, with clients as the command has them."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with moto.mock_aws():
        client = teardown.clients(REGION)
        yield lambda service: stacks if service == "cloudformation" else client(service)


@pytest.fixture
def deployed(aws: Client) -> Client:
    """As `cdk deploy` leaves it; and things of others, which must stay."""
    for name in ("firstword", "other"):
        _deploy(aws, name)
    s3 = aws("s3")
    for name in (BUCKET, "other-base-weights-abc"):
        s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": REGION})
        s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
        for body in (b"old", b"new"):
            s3.put_object(Bucket=name, Key="kokoro/model.onnx", Body=body)
    s3.delete_object(Bucket=BUCKET, Key="kokoro/model.onnx")
    return aws


def _deploy(aws: Client, name: str) -> None:
    sagemaker = aws("sagemaker")
    sagemaker.create_model(ModelName=f"{name}-model", ExecutionRoleArn=ROLE)
    sagemaker.create_endpoint_config(
        EndpointConfigName=f"{name}-config",
        ProductionVariants=[
            {"VariantName": "all", "ModelName": f"{name}-model", "InstanceType": "ml.m5.large"}
        ],
    )
    sagemaker.create_endpoint(EndpointName=f"{name}-tts", EndpointConfigName=f"{name}-config")
    ecs = aws("ecs")
    ecs.create_cluster(clusterName=name)
    task = ecs.register_task_definition(
        family=f"{name}-task", containerDefinitions=[{"name": "one", "image": "one", "memory": 64}]
    )["taskDefinition"]["taskDefinitionArn"]
    for service in ("segmenter", "tts_gateway", "agent"):
        ecs.create_service(cluster=name, serviceName=service, taskDefinition=task, desiredCount=1)
    aws("ecr").create_repository(repositoryName=f"{name}/inference")
    aws("logs").create_log_group(logGroupName=f"/{name}/segmenter")
    aws("logs").create_log_group(logGroupName=f"/aws/sagemaker/Endpoints/{name}-tts")
    cache = aws("elasticache")
    cache.create_replication_group(
        ReplicationGroupId=name, ReplicationGroupDescription=name, Engine="redis"
    )
    cache.create_snapshot(SnapshotName=f"{name}-night", ReplicationGroupId=name)
    aws("bedrock-agentcore-control").create_agent_runtime(
        agentRuntimeName=f"{name}_agent",
        agentRuntimeArtifact={
            "containerConfiguration": {
                "containerUri": "123456789012.dkr.ecr.eu-west-1.amazonaws.com/agent:1"
            }
        },
        roleArn=ROLE,
        networkConfiguration={"networkMode": "PUBLIC"},
    )


def tear_down(client: Client, *words: str) -> int:
    options: argparse.Namespace = parser().parse_args(["teardown", *words])
    return take_away(options, Console(), client)


def names(things: list[Any]) -> list[str]:
    return [thing.name for thing in things]


IN_ORDER = [
    "firstword_agent",
    "agent",
    "firstword-tts",
    "firstword-config",
    "firstword-model",
    "segmenter",
    "tts_gateway",
    "firstword",
]


def test_a_plan_tells_all_in_order_and_touches_nothing(deployed: Client, capsys: Capture) -> None:
    assert tear_down(deployed, "--plan") == 0
    shown = capsys.readouterr()
    going = [line.split(";")[0].split()[-1] for line in shown.out.splitlines() if "goes: " in line]
    assert going == IN_ORDER
    assert "by the hour, whether anybody speaks or not" in shown.out
    assert "nothing was taken away" in shown.err
    assert names(Deployment("firstword", deployed).running()) == IN_ORDER


def test_it_takes_away_what_runs_in_order_and_tells_what_stays(
    deployed: Client, stacks: Any, capsys: Capture
) -> None:
    assert tear_down(deployed, "--yes") == 0
    shown = capsys.readouterr().out
    gone = [line.split(";")[0].split()[-1] for line in shown.splitlines() if "gone: " in line]
    assert gone == IN_ORDER
    assert stacks.stacks == ["firstword-base", "other"]
    for stays in (
        BUCKET,
        "firstword/inference (0 images, 0.0 GB)",
        "/firstword/segmenter",
        "night",
    ):
        assert stays in shown
    assert "--also weights,images,logs,snapshots" in shown
    assert Deployment("firstword", deployed).running() == []
    assert len(Deployment("other", deployed).running()) == len(IN_ORDER)

    assert tear_down(deployed, "--yes") == 0
    assert "nothing of firstword runs" in capsys.readouterr().out


def test_what_stays_goes_where_it_is_named(deployed: Client, stacks: Any, capsys: Capture) -> None:
    assert tear_down(deployed, "--yes", "--also", "weights,logs") == 0
    staying = Deployment("firstword", deployed).staying()
    assert (staying["weights"], staying["logs"]) == ([], [])
    assert names(staying["images"]) == ["firstword/inference"]
    assert "--also images,snapshots" in capsys.readouterr().out
    assert stacks.stacks == ["firstword-base", "other"]

    assert tear_down(deployed, "--yes", "--also", "all") == 0
    assert not any(Deployment("firstword", deployed).staying().values())
    assert stacks.stacks == ["other"]  # the stack of what stays goes when nothing stays
    assert all(Deployment("other", deployed).staying().values())
    assert "stays" not in capsys.readouterr().out


def test_a_teardown_that_broke_off_goes_on(deployed: Client) -> None:
    for thing in Deployment("firstword", deployed).running()[:4]:
        thing.remove()
    assert tear_down(deployed, "--yes") == 0
    assert Deployment("firstword", deployed).running() == []


def test_an_account_with_nothing_in_it(aws: Client, stacks: Any, capsys: Capture) -> None:
    stacks.stacks = []
    assert tear_down(aws) == 0
    assert capsys.readouterr().out == "nothing of firstword runs\n"


def test_what_aws_refuses_is_one_sentence(deployed: Client) -> None:
    from botocore.exceptions import ClientError, NoCredentialsError

    def refuses(error: Exception) -> Client:
        class Refusing:
            def __getattr__(self, name: str) -> Any:
                raise error

        return lambda service: Refusing() if service == "ecs" else deployed(service)

    denied = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "ListServices")
    for error in (denied, NoCredentialsError()):
        with pytest.raises(FirstwordError, match="AWS: "):
            tear_down(refuses(error), "--yes")
    with pytest.raises(ZeroDivisionError):  # a mistake of ours looks like one
        tear_down(refuses(ZeroDivisionError()), "--yes")


def test_a_region_without_agentcore(deployed: Client) -> None:
    from botocore.exceptions import EndpointConnectionError

    class Nowhere:
        def get_paginator(self, _name: str) -> Any:
            raise EndpointConnectionError(endpoint_url="https://nowhere")

    def client(service: str) -> Any:
        return Nowhere() if service == "bedrock-agentcore-control" else deployed(service)

    assert names(Deployment("firstword", client).running()) == IN_ORDER[1:]


def test_without_boto3_or_a_region_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(FirstwordError, match="--region"):
        teardown.clients("")
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(FirstwordError, match=r"firstword\[aws\]"):
        teardown.clients(REGION)


@pytest.mark.parametrize("name", ["", "-", "a--b", "a-", "Firstword", "a b", "a/b", "x" * 41, "ä"])
def test_what_no_deployment_is_called_takes_nothing_away(name: str, capsys: Capture) -> None:
    """An empty variable of a shell least of all."""
    with pytest.raises(SystemExit):
        parser().parse_args(["teardown", "--yes", "--name", name])
    assert "up to 40 of a to z" in capsys.readouterr().err


def test_logs_of_a_deployment_whose_name_begins_like_ours_stay(deployed: Client) -> None:
    others = "/aws/sagemaker/Endpoints/firstword-tts2-tts"
    deployed("logs").create_log_group(logGroupName=others)
    assert names(Deployment("firstword", deployed).staying()["logs"]) == [
        "/firstword/segmenter",
        "/aws/sagemaker/Endpoints/firstword-tts",
    ]


def test_what_else_goes_is_named_by_known_words() -> None:
    assert teardown.chosen("all") == KEPT
    assert teardown.chosen("logs, weights") == ["logs", "weights"]
    for words in ("", "all,logs", "everything"):
        with pytest.raises(ValueError, match="weights, images, logs, snapshots"):
            teardown.chosen(words)
    with pytest.raises(SystemExit):
        parser().parse_args(["teardown", "--also", "everything"])
