"""The deployment on AWS: what linters miss and an operator would find out at night."""

from __future__ import annotations

import json
import re
import shutil
from typing import Any

import pytest
import yaml

from tests.deploy.aws_support import CERTIFICATE, SECRET, Synthesised, synthesise
from tools.cores import ROOT

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="CDK needs Node.js, which is not here"),
    pytest.mark.timeout(300),
]
pytest.importorskip("aws_cdk", reason="pip install 'firstword[aws-deploy]'")
pytest.importorskip("cfnlint", reason="pip install cfn-lint")


@pytest.fixture(scope="module")
def ecs(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The agent on ECS, reached from outside, answered by a model of Bedrock."""
    context = {
        "certificate": CERTIFICATE,
        "agent_source": "bedrock",
        "agent_model": "eu.amazon.nova-lite-v1:0",
        "alerts_topic": "arn:aws:sns:eu-west-1:123456789012:alerts",
    }
    return synthesise(tmp_path_factory.mktemp("ecs"), context)


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """The agent in AgentCore, weights in the image, one node, no more than needed."""
    context = {"agent": "agentcore", "engine": "onnx", "weights": "image", "cache_replicas": "0"}
    context |= {"agent_source": "openai", "agent_model": "small", "agent_openai_secret": SECRET}
    context |= {"agent_openai_url": "https://chat.example/v1"}
    return synthesise(tmp_path_factory.mktemp("managed"), {**context, "tokens_secret": ""})


# -- linters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["ecs", "managed"])
def test_cfn_lint_finds_only_what_we_know(which: str, request: pytest.FixtureRequest) -> None:
    from cfnlint import ManualArgs
    from cfnlint.api import lint_file

    from deploy.aws.exceptions import CFN_LINT

    made: Synthesised = request.getfixturevalue(which)
    region = ManualArgs(regions=["eu-west-1"])
    found = [match for path in made.paths for match in lint_file(path, region)]
    unknown = [str(match) for match in found if match.rule.id not in CFN_LINT]
    assert not unknown
    if which == "ecs":
        assert {match.rule.id for match in found} == set(CFN_LINT)


def test_cdk_nag_finds_only_what_we_know_and_all_of_it(
    ecs: Synthesised, managed: Synthesised
) -> None:
    from deploy.aws.exceptions import CDK_NAG

    found = ecs.findings | managed.findings
    used = {
        (rule, part)
        for rule, part in CDK_NAG
        for each, path in found
        if each == rule and part in path
    }
    unknown = {
        (rule, path)
        for rule, path in found
        if not any(rule == known and part in path for known, part in CDK_NAG)
    }
    assert not unknown
    assert used == set(CDK_NAG)


# -- what they miss -------------------------------------------------------------------------------


def test_valkey_refuses_rather_than_forgets(ecs: Synthesised, managed: Synthesised) -> None:
    for made, nodes in ((ecs, 2), (managed, 1)):
        group = made.one("AWS::ElastiCache::ReplicationGroup")
        assert group["Engine"] == "valkey"
        assert group["TransitEncryptionEnabled"] is True
        assert group["AtRestEncryptionEnabled"] is True
        assert "resolve:secretsmanager" in json.dumps(group["AuthToken"])
        assert group["NumCacheClusters"] == nodes
        assert group["AutomaticFailoverEnabled"] is (nodes > 1)
        parameters = made.one("AWS::ElastiCache::ParameterGroup")
        assert parameters["CacheParameterGroupFamily"] == "valkey8"
        assert parameters["Properties"] == {"maxmemory-policy": "noeviction"}


def test_the_endpoint_is_what_the_gateway_needs(ecs: Synthesised, managed: Synthesised) -> None:
    (variant,) = ecs.one("AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert variant["InstanceType"] == "ml.g5.xlarge"
    assert variant["InferenceAmiVersion"] == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert variant["RoutingConfig"] == {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"}
    assert ecs.one("AWS::SageMaker::Endpoint")["RetainAllVariantProperties"] is True
    assert variant["ContainerStartupHealthCheckTimeoutInSeconds"] == 600
    model = ecs.one("AWS::SageMaker::Model")
    container = model["PrimaryContainer"]
    assert model["EnableNetworkIsolation"] is True
    assert container["Environment"]["FIRSTWORD_MODEL_DIR"] == "/opt/ml/model"
    source = container["ModelDataSource"]["S3DataSource"]
    assert (source["CompressionType"], source["S3DataType"]) == ("None", "S3Prefix")
    assert re.search(r"/kokoro-v1\.0-[0-9a-f]{12}/\"", json.dumps(source["S3Uri"]))
    assert container["Environment"]["FIRSTWORD_INFERENCE_ENGINE"] == "torch"
    assert container["Environment"]["FIRSTWORD_INFERENCE_DEVICE"] == "cuda"
    baked = managed.one("AWS::SageMaker::Model")["PrimaryContainer"]
    assert "ModelDataSource" not in baked
    assert "FIRSTWORD_MODEL_DIR" not in baked["Environment"]


def test_it_scales_out_by_streams_and_in_slowly(ecs: Synthesised) -> None:
    policies = {
        each["Properties"]["PolicyType"]: each["Properties"]
        for each in ecs.all("AWS::ApplicationAutoScaling::ScalingPolicy")
        if each["Properties"]["PolicyName"].startswith("firstword-tts")
    }
    out = policies["TargetTrackingScaling"]["TargetTrackingScalingPolicyConfiguration"]
    assert out["DisableScaleIn"] is True
    assert out["PredefinedMetricSpecification"]["PredefinedMetricType"] == (
        "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    )
    fewer = policies["StepScaling"]["StepScalingPolicyConfiguration"]
    assert fewer["StepAdjustments"][0]["ScalingAdjustment"] == -1
    quiet = ecs.one("AWS::CloudWatch::Alarm")
    assert quiet["Period"] * quiet["EvaluationPeriods"] == 900
    assert quiet["Threshold"] <= out["TargetValue"] / 2


@pytest.mark.parametrize(
    ("name", "port", "stop_s"),
    [("segmenter", 9101, 60), ("tts_gateway", 9102, 120), ("agent", 8000, 120)],
)
def test_a_service_has_time_to_stop_and_is_asked_whether_it_lives(
    name: str, port: int, stop_s: int, ecs: Synthesised
) -> None:
    container = ecs.container(name)
    assert container["StopTimeout"] == stop_s
    assert container["ReadonlyRootFilesystem"] is True
    health = container["HealthCheck"]
    assert (health["Interval"], health["Timeout"], health["Retries"]) == (15, 5, 3)
    assert f"127.0.0.1:{port}/livez" in health["Command"][-1]
    assert container["LogConfiguration"]["Options"]["mode"] == "non-blocking"
    assert container["LogConfiguration"]["Options"]["max-buffer-size"] == "26214400b"
    assert next(each["Name"] for each in container["Secrets"]) == "FIRSTWORD_REDIS_URL"
    variables = {each["Name"] for each in container["Environment"]}
    assert not variables & {"FIRSTWORD_REDIS_URL", "FIRSTWORD_API_TOKENS"}
    deployed = ecs.service(name)["DeploymentConfiguration"]
    assert (deployed["MinimumHealthyPercent"], deployed["MaximumPercent"]) == (100, 200)
    assert ecs.service(name)["NetworkConfiguration"]["AwsvpcConfiguration"]["AssignPublicIp"] == (
        "DISABLED"
    )


def test_every_variable_of_a_task_is_a_setting_of_its_service(ecs: Synthesised) -> None:
    from firstword.settings import table
    from services.agent.settings import AgentSettings
    from services.segmenter.settings import SegmenterSettings
    from services.tts_gateway.settings import GatewaySettings

    of = {"segmenter": SegmenterSettings, "tts_gateway": GatewaySettings, "agent": AgentSettings}
    for name, settings in of.items():
        container = ecs.container(name)
        given = {each["Name"] for each in (*container["Environment"], *container["Secrets"])}
        assert given <= {row[0] for row in table(settings)} | {"FIRSTWORD_LOG_LEVEL"}


def test_roles_may_do_what_their_service_does_and_no_more(ecs: Synthesised) -> None:
    assert ecs.may("ServicesegmenterTaskTaskRole") == {}
    assert set(ecs.may("ServicettsgatewayTaskTaskRole")) == {
        "ecs:GetTaskProtection",
        "ecs:UpdateTaskProtection",
        "sagemaker:InvokeEndpoint",
        "sagemaker:InvokeEndpointWithBidirectionalStream",
    }
    streams = ecs.may("ServicettsgatewayTaskTaskRole")[
        "sagemaker:InvokeEndpointWithBidirectionalStream"
    ]
    assert json.dumps(streams).endswith(':endpoint/firstword-tts"]]}]')
    models = ecs.may("ServiceagentTaskTaskRole")
    assert set(models) == {"bedrock:InvokeModel", "bedrock:InvokeModelWithResponseStream"}
    assert "foundation-model/amazon.nova-lite-v1:0" in json.dumps(models)
    assert "inference-profile/eu.amazon.nova-lite-v1:0" in json.dumps(models)
    container = ecs.may("EndpointRole")
    assert {action for action in container if action.startswith("s3:")} == {
        "s3:GetObject",
        "s3:ListBucket",
    }


def test_callers_may_be_silent_on_an_open_line(ecs: Synthesised) -> None:
    balancer = ecs.one("AWS::ElasticLoadBalancingV2::LoadBalancer")
    attributes = {each["Key"]: each["Value"] for each in balancer["LoadBalancerAttributes"]}
    assert attributes["idle_timeout.timeout_seconds"] == "4000"
    assert balancer["Scheme"] == "internet-facing"
    listener = ecs.one("AWS::ElasticLoadBalancingV2::Listener")
    assert (listener["Protocol"], listener["Port"]) == ("HTTPS", 443)
    group = ecs.one("AWS::ElasticLoadBalancingV2::TargetGroup")
    assert group["HealthCheckPath"] == "/livez"  # one that only waits is not replaced
    delay = {each["Key"]: each["Value"] for each in group["TargetGroupAttributes"]}
    assert int(delay["deregistration_delay.timeout_seconds"]) < 120
    (named,) = ecs.service("agent")["ServiceConnectConfiguration"]["Services"]
    assert named["Timeout"] == {"IdleTimeoutSeconds": 3600, "PerRequestTimeoutSeconds": 0}


def test_the_endpoint_is_there_before_the_gateway_and_the_agent(
    ecs: Synthesised, managed: Synthesised
) -> None:
    for made, last in ((ecs, "AWS::ECS::Service"), (managed, "AWS::BedrockAgentCore::Runtime")):
        (endpoint,) = [
            id
            for id, each in made.main["Resources"].items()
            if each["Type"] == "AWS::SageMaker::Endpoint"
        ]
        waiting = [each for each in made.all(last) if endpoint in each.get("DependsOn", [])]
        assert len(waiting) == (2 if made is ecs else 1)


def test_the_managed_agent(managed: Synthesised) -> None:
    runtime = managed.one("AWS::BedrockAgentCore::Runtime")
    assert runtime["NetworkConfiguration"]["NetworkMode"] == "VPC"
    image = json.dumps(runtime["AgentRuntimeArtifact"])
    assert "Imagesagentcore" in image
    assert ":0.1.0" in image
    variables = runtime["EnvironmentVariables"]
    assert "resolve:secretsmanager" in json.dumps(variables["FIRSTWORD_REDIS_URL"])
    key = variables["FIRSTWORD_AGENT_OPENAI_KEY"]
    assert key == f"{{{{resolve:secretsmanager:{SECRET}:SecretString:::}}}}"
    trusted = [
        each["Properties"]["AssumeRolePolicyDocument"]["Statement"][0]
        for id, each in managed.main["Resources"].items()
        if id.startswith("ManagedAgentRole") and each["Type"] == "AWS::IAM::Role"
    ]
    assert trusted[0]["Principal"] == {"Service": "bedrock-agentcore.amazonaws.com"}
    assert "aws:SourceAccount" in trusted[0]["Condition"]["StringEquals"]
    assert not managed.all("AWS::ElasticLoadBalancingV2::LoadBalancer")
    assert "AgentRuntime" in managed.main["Outputs"]


def test_what_stays_is_in_a_stack_of_its_own(ecs: Synthesised) -> None:
    kinds = {each["Type"]: each for each in ecs.base["Resources"].values()}
    lasting = {"AWS::S3::Bucket", "AWS::ECR::Repository", "AWS::Logs::LogGroup"}
    assert set(kinds) == lasting | {"AWS::S3::BucketPolicy"}
    assert {kinds[kind]["DeletionPolicy"] for kind in lasting} == {"Retain"}
    assert kinds["AWS::Logs::LogGroup"]["Properties"]["RetentionInDays"] == 30
    assert {each["DeletionPolicy"] for each in ecs.all("AWS::Logs::LogGroup")} == {"Delete"}
    names = {
        each["Properties"]["RepositoryName"]
        for each in ecs.base["Resources"].values()
        if each["Type"] == "AWS::ECR::Repository"
    }
    assert names == {f"firstword/{n}" for n in ("segmenter", "tts_gateway", "inference", "agent")}


def test_metrics_and_rules_go_to_managed_prometheus(ecs: Synthesised) -> None:
    rules = [each["Properties"] for each in ecs.all("AWS::APS::RuleGroupsNamespace")]
    for name in ("recording", "alerts"):
        text = (ROOT / "deploy" / "observability" / f"{name}.yml").read_text("utf-8")
        assert [each["Data"] for each in rules if each["Name"].endswith(name)] == [text]
    manager = yaml.safe_load(_flat(ecs.one("AWS::APS::Workspace")["AlertManagerDefinition"]))
    assert "sns_configs" in manager["alertmanager_config"]
    (variable,) = ecs.container("collector")["Environment"]
    wanted = yaml.safe_load(_flat(variable["Value"]))
    observed = wanted["extensions"]["ecs_observer"]["services"]
    assert {each["job_name"]: each["metrics_ports"] for each in observed} == {
        "segmenter": [9101],
        "gateway": [9102],
        "agent": [8000],
    }
    assert wanted["service"]["pipelines"]["metrics"]["exporters"] == ["prometheusremotewrite"]


def _flat(value: Any) -> str:
    """A text with references of CloudFormation in it, each as a word."""
    if isinstance(value, str):
        return value
    parts = value["Fn::Join"][1]
    return "".join(part if isinstance(part, str) else "reference" for part in parts)


def test_outputs_are_what_doctor_takes(ecs: Synthesised) -> None:
    from services.tts_gateway.sagemaker_target import parse

    outputs = ecs.main["Outputs"]
    assert {"Upstream", "RedisUrlSecret", "AgentUrl", "Prometheus"} <= set(outputs)
    assert parse(_flat(outputs["Upstream"]["Value"])).endpoint == "firstword-tts"
    variables = {
        each["Name"]: each["Value"] for each in ecs.container("tts_gateway")["Environment"]
    }
    assert variables["FIRSTWORD_UPSTREAM"] == outputs["Upstream"]["Value"]
