"""The choices of a deployment on AWS: read, checked, told all at once; and where they arrive."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from firstword.errors import SettingsError
from firstword.settings import table
from tests.deploy.aws_support import NEEDED, SECRET, Synthesised, synthesise
from tools.cores import ROOT

pytestmark = pytest.mark.timeout(300)
needs_cdk = pytest.mark.skipif(shutil.which("node") is None, reason="CDK needs Node.js")
pytest.importorskip("aws_cdk", reason="pip install 'firstword[aws-deploy]'")

from deploy.aws.base import weights_prefix  # noqa: E402 - not without CDK
from deploy.aws.environments import as_text, environment  # noqa: E402
from deploy.aws.settings import Deployment, read  # noqa: E402

KEY = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:chat-AbCdEf"
CPU = {"endpoint_instance": "ml.c7i.xlarge", "endpoint_ami": "", "engine": "onnx"}
OPENAI = {
    "agent_source": "openai",
    "agent_model": "small",
    "agent_openai_url": "https://chat.example/v1",
    "agent_openai_secret": KEY,
}


def told(**context: object) -> list[str]:
    """The problems of a context that has all that is needed."""
    try:
        read({**NEEDED, **context})
    except SettingsError as error:
        return list(error.problems)
    return []


# -- read and checked -----------------------------------------------------------------------------


def test_wrong_choices_are_told_all_at_once() -> None:
    wrong = {
        "name": "My_App",
        "image_tag": "latest",
        "min_instances": "3",
        "target_sessions": "8",
        "scale_in_sessions": "6",
        "vpc_id": "vpc-1",
        "agent_source": "bedrock",
        "max_tasks": "1",
        "certificate": "mine",
        "partitions": "many",
        "segmentters": "3",
        "inference_env": "BATCH=all",
        "gateway_env": "MAX_AHEAD=3",
        "runbook_base": "docs",
    }
    with pytest.raises(SettingsError) as caught:
        read(wrong)
    for name in (
        "name='My_App'",
        "image_tag",
        "max_instances",
        "scale_in",
        "tokens",
        "vpc_id",
        "model",
        "max_tasks",
        "certificate",
        "partitions",
        "segmentters",
        "FIRSTWORD_INFERENCE_BATCH",
        "MAX_AHEAD",
        "runbook_base",
    ):
        assert any(name in problem for problem in caught.value.problems), name
    with pytest.raises(SettingsError, match="one of ecs, agentcore"):
        read({"agent": "lambda"})


def test_what_cannot_be_read_is_not_held_against_others() -> None:
    assert told(agent="lambda", tokens_secret="") == [
        "agent='lambda': must be one of ecs, agentcore"
    ]
    assert len(told(min_instances="none", max_instances="0")) == 2


def test_the_default_is_what_our_pages_advise_for_gpus() -> None:
    made = read(NEEDED)
    assert (made.engine, made.weights) == ("torch", "bucket")
    assert told(**CPU) == []
    assert told(engine="onnx", weights="image") == []


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({"weights": "image"}, "weights=image is for engine=onnx only"),
        ({**CPU, "endpoint_ami": "al2023-ami-sagemaker-inference-gpu-4-1"}, "leave it empty"),
        ({**CPU, "engine": "torch"}, "take engine=onnx"),
        ({"endpoint_ami": ""}, "no driver for CUDA 13"),
        ({"endpoint_instance": "g5.xlarge", "endpoint_ami": "", "engine": "onnx"}, "as ml.g5"),
        ({**OPENAI, "agent_openai_url": ""}, "needs its server"),
        ({**OPENAI, "agent_openai_url": "http://chat.example/v1"}, "needs its server"),
        ({**OPENAI, "agent_openai_url": "https://chat.example:8443/v1"}, "port 443 only"),
        ({**OPENAI, "agent_openai_secret": "sk-mine"}, "must be an ARN"),
        ({"agent_openai_url": "https://chat.example/v1"}, "are for agent_source=openai"),
        ({"runbook_base": "https://wiki.example/RUNBOOK.md#x"}, "without #"),
    ],
)
def test_what_does_not_go_together(context: dict[str, str], says: str) -> None:
    (problem,) = told(**context)
    assert says in problem


@pytest.mark.parametrize("name", ["enginee", "engine_", "Engine", "image-tag", "inferance_env"])
def test_a_misspelt_choice_is_told(name: str) -> None:
    (problem,) = told(**{name: "onnx"})
    assert problem.startswith(f"{name}: there is no such choice; did you mean ")


@pytest.mark.parametrize(
    "name",
    [
        "aws:cdk:enable-path-metadata",
        "aws:cdk:version-reporting",
        "@aws-cdk/core:newStyleStackSynthesis",
        "cli-telemetry",
        "availability-zones:account=123456789012:region=eu-west-1",
    ],
)
def test_keys_of_cdk_itself_are_left_alone(name: str) -> None:
    assert told(**{name: True}) == []


@needs_cdk
def test_all_that_cdk_puts_into_the_context_is_left_alone() -> None:
    import aws_cdk as cdk

    context = cdk.App(context=NEEDED).node.get_all_context()
    assert read(context).image_tag == NEEDED["image_tag"]


# -- settings of services -------------------------------------------------------------------------


def test_settings_are_named_whole_or_without_what_they_begin_with() -> None:
    text = "BATCH=everything FIRSTWORD_INFERENCE_PRECISION=half LOG_LEVEL=debug"
    assert environment("inference", text) == {
        "FIRSTWORD_INFERENCE_BATCH": "everything",
        "FIRSTWORD_INFERENCE_PRECISION": "half",
        "FIRSTWORD_LOG_LEVEL": "debug",
    }
    assert environment("agent", "SYSTEM_PROMPT='Be brief.' OTEL_SDK_DISABLED=true") == {
        "FIRSTWORD_AGENT_SYSTEM_PROMPT": "Be brief.",
        "OTEL_SDK_DISABLED": "true",
    }
    assert environment("segmenter", "TURN_IDLE_S=9") == {"FIRSTWORD_TURN_IDLE_S": "9"}
    assert environment("gateway", "") == {}


def test_an_object_of_cdk_json_says_the_same() -> None:
    made = as_text({"SYSTEM_PROMPT": 'Say "yes", or it\'s no.', "MAX_TOKENS": 9})
    assert environment("agent", made) == {
        "FIRSTWORD_AGENT_SYSTEM_PROMPT": 'Say "yes", or it\'s no.',
        "FIRSTWORD_AGENT_MAX_TOKENS": "9",
    }
    assert told(inference_env={"MAX_WAIT_S": 1.5, "VOICE": "af_heart:2+af_bella:1"}) == []
    assert as_text({"ON": True}) == "ON=1"


@pytest.mark.parametrize(
    ("service", "text", "says"),
    [
        ("inference", "MAX_BATCH=lots", "must be a whole number"),
        ("inference", "MAX_BATCH=900", "at most 64"),
        ("inference", "BACTH=everything", "did you mean BATCH?"),
        ("inference", "COLOUR=red", "there are BATCH, DEVICE, "),
        ("inference", "ENGINE=onnx", "by the choice engine"),
        ("inference", "HOST=::", "by what the deployment says itself"),
        ("inference", "OTEL_SDK_DISABLED=true", "is no setting of it"),
        ("inference", "BATCH", "must be NAME=VALUE"),
        ("inference", "VOICE='af_heart", "a quotation mark has no other"),
        ("gateway", "MAX_SESSIONS=9", "by the choice gateway_sessions"),
        ("agent", "OPENAI_KEY=sk-1", "by the choice agent_openai_secret"),
        ("segmenter", "LOG_LEVEL=loud", "must be one of DEBUG, "),
    ],
)
def test_a_wrong_setting_is_told_before_anything_is_made(
    service: str, text: str, says: str
) -> None:
    (problem,) = told(**{f"{service}_env": text})
    assert problem.startswith(f"{service}_env: ")
    assert says in problem


# -- where they arrive ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Synthesised:
    """A CPU endpoint, a chat server, settings of every service, a runbook that can be opened."""
    context = {
        **CPU,
        **OPENAI,
        "inference_env": "FIRST_CHUNK_WORDS=0 VOICE=bf_emma",
        "segmenter_env": "VOICE=bf_emma",
        "gateway_env": "SESSION_IDLE_S=120 OTEL_EXPORTER_OTLP_ENDPOINT=https://traces.example",
        "agent_env": "MAX_TOKENS=300 LOG_LEVEL=WARNING",
        "runbook_base": "https://wiki.example/firstword/RUNBOOK.md",
    }
    return synthesise(tmp_path_factory.mktemp("chosen"), context)


@needs_cdk
def test_settings_arrive_at_their_service(chosen: Synthesised) -> None:
    model = chosen.one("AWS::SageMaker::Model")["PrimaryContainer"]
    assert model["Environment"] == {
        "FIRSTWORD_INFERENCE_HOST": "0.0.0.0",
        "FIRSTWORD_INFERENCE_ENGINE": "onnx",
        "FIRSTWORD_INFERENCE_FIRST_CHUNK_WORDS": "0",
        "FIRSTWORD_INFERENCE_VOICE": "bf_emma",
        "FIRSTWORD_MODEL_DIR": "/opt/ml/model",
    }
    (variant,) = chosen.one("AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert "InferenceAmiVersion" not in variant
    given = {
        (name, each["Name"]): each["Value"]
        for name in ("segmenter", "tts_gateway", "agent")
        for each in chosen.container(name)["Environment"]
    }
    assert given["segmenter", "FIRSTWORD_VOICE"] == "bf_emma"
    assert given["tts_gateway", "FIRSTWORD_SESSION_IDLE_S"] == "120"
    assert given["tts_gateway", "OTEL_EXPORTER_OTLP_ENDPOINT"] == "https://traces.example"
    assert given["agent", "FIRSTWORD_AGENT_MAX_TOKENS"] == "300"
    assert given["agent", "FIRSTWORD_LOG_LEVEL"] == "WARNING"
    assert given["segmenter", "FIRSTWORD_LOG_LEVEL"] == "INFO"


@needs_cdk
def test_the_agent_asks_a_chat_server_with_a_key_that_stays_a_secret(chosen: Synthesised) -> None:
    container = chosen.container("agent")
    given = {each["Name"]: each["Value"] for each in container["Environment"]}
    assert given["FIRSTWORD_AGENT_SOURCE"] == "openai"
    assert given["FIRSTWORD_AGENT_OPENAI_URL"] == "https://chat.example/v1"
    secrets = {each["Name"]: each["ValueFrom"] for each in container["Secrets"]}
    assert secrets["FIRSTWORD_AGENT_OPENAI_KEY"] == KEY
    assert chosen.may("ServiceagentTaskTaskRole") == {}  # no model of Bedrock
    assert KEY in json.dumps(chosen.may("ServiceagentTaskExecutionRole"))


@needs_cdk
def test_alerts_lead_to_where_the_runbook_can_be_opened(chosen: Synthesised) -> None:
    namespaces = [each["Properties"] for each in chosen.all("AWS::APS::RuleGroupsNamespace")]
    [data] = [each["Data"] for each in namespaces if each["Name"].endswith("alerts")]
    alerts = [rule for group in yaml.safe_load(data)["groups"] for rule in group["rules"]]
    for alert in alerts:
        url = f"https://wiki.example/firstword/RUNBOOK.md#{alert['alert'].lower()}"
        assert alert["annotations"]["runbook_url"] == url


def test_each_engine_has_a_place_for_its_weights() -> None:
    assert weights_prefix("torch") != weights_prefix("onnx")


def test_what_capacity_prints_is_context_that_is_read() -> None:
    from firstword.capacity import Demand, plan

    planned = plan(24, 300, Demand(peak=200, growth_per_minute=6, least=2))
    made = read({"image_tag": "1", "tokens_secret": SECRET, **planned.context()})
    assert made.target_sessions == planned.scale_out_at
    assert (made.min_instances, made.max_instances) == (planned.least, planned.most)


def test_cdk_json_runs_this_app() -> None:
    command = json.loads((Path(ROOT) / "deploy/aws/cdk.json").read_text("utf-8"))["app"]
    assert command == "PYTHONPATH=../.. python3 -P -m deploy.aws.app"


def test_the_page_has_every_choice() -> None:
    page = (ROOT / "docs" / "DEPLOY.md").read_text("utf-8")
    for name, default, about in table(Deployment):
        assert f"| {name} | {default} | {about} |" in page
