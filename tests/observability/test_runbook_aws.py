"""What the runbook says of SageMaker: commands that there are, wherever the container's own look
does not help."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest

from tests.observability.promtool import alerts
from tests.observability.runbook import PAGE, entry

CONTAINER = re.compile(
    r"INFERENCE\b|inference (service|instance)|firstword:rtf|firstword_rtf|`/ping`"
)
"""What is not to be had behind SageMaker."""
OF_THE_COMMAND_LINE = {("logs", "tail"): {"since"}}
"""Commands that AWS's command line has of its own, with the options that we use."""
EVERYWHERE = {"query", "output", "max-results", "cli-input-json"}


def commands() -> list[list[str]]:
    """Every command for AWS's command line on the page."""
    lines = re.findall(r"^    (aws .*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert lines
    return [shlex.split(line) for line in lines]


@pytest.mark.parametrize("alert", [str(alert["alert"]) for alert in alerts()])
def test_what_asks_the_container_has_another_way_at_sagemaker(alert: str) -> None:
    said, has_other, other = entry(alert).partition("**At SageMaker.**")
    if CONTAINER.search(said):
        assert has_other, f"{alert}: behind SageMaker nobody can do that"
        assert re.search(r"\(#(behind-sagemaker|firstword\w+)\)", other), f"{alert}: leads nowhere"


@pytest.mark.parametrize("words", commands(), ids=lambda words: " ".join(words[1:3]))
def test_commands_and_their_options_are_those_of_aws(words: list[str]) -> None:
    session = pytest.importorskip("botocore.session", reason="pip install 'firstword[bedrock]'")
    xform: Any = pytest.importorskip("botocore").xform_name
    service, operation = words[1:3]
    options = {word.removeprefix("--") for word in words if word.startswith("--")}
    if (service, operation) in OF_THE_COMMAND_LINE:
        assert options <= OF_THE_COMMAND_LINE[service, operation]
        return
    model = session.get_session().get_service_model(service)
    operations = {xform(name, "-"): name for name in model.operation_names}
    assert operation in operations
    shape = model.operation_model(operations[operation]).input_shape
    members = {xform(name, "-"): name for name in shape.members}
    flags = {option.removeprefix("no-") for option in options} - EVERYWHERE
    assert flags <= set(members)
    if "cli-input-json" not in options:
        assert {xform(name, "-") for name in shape.required_members} <= options


def test_a_configuration_is_made_again_of_all_that_ours_has() -> None:
    """The runbook copies what it names, and `deploy/aws/endpoint.py` sets no more."""
    pytest.importorskip("aws_cdk", reason="pip install 'firstword[aws-deploy]'")
    from pathlib import Path

    import deploy.aws.endpoint

    source = Path(deploy.aws.endpoint.__file__).read_text(encoding="utf-8")
    _, _, rest = source.partition("sagemaker.CfnEndpointConfig(")
    given = re.findall(r"^            (\w+)=", rest.partition("self.endpoint = ")[0], re.MULTILINE)
    (copied,) = re.findall(r"--query '\{(.*?)\}'", PAGE.read_text(encoding="utf-8"))
    names = {each.partition(":")[0].strip() for each in copied.split(",")}
    assert {re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower() for name in names} == set(given)
