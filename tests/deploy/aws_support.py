"""The deployment on AWS, synthesised in this process: templates, and what cdk-nag says of them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECRET = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:tokens-AbCdEf"
CERTIFICATE = "arn:aws:acm:eu-west-1:123456789012:certificate/11111111-2222-3333-4444-555555555555"
NEEDED = {"image_tag": "0.1.0", "tokens_secret": SECRET}


@dataclass(frozen=True, slots=True)
class Synthesised:
    """Both stacks' templates, and the findings of cdk-nag as (rule, path)."""

    base: Mapping[str, Any]
    main: Mapping[str, Any]
    findings: frozenset[tuple[str, str]]
    paths: tuple[Path, ...]

    def all(self, kind: str) -> list[dict[str, Any]]:
        """The resources of a kind in the stack that runs."""
        return [each for each in self.main["Resources"].values() if each["Type"] == kind]

    def one(self, kind: str) -> dict[str, Any]:
        """The properties of the only one."""
        (found,) = self.all(kind)
        properties: dict[str, Any] = found["Properties"]
        return properties

    def service(self, name: str) -> dict[str, Any]:
        """The properties of the ECS service of that name."""
        services = [each["Properties"] for each in self.all("AWS::ECS::Service")]
        (found,) = [each for each in services if each["ServiceName"] == name]
        return dict(found)

    def container(self, name: str) -> dict[str, Any]:
        """The container of that name, of whichever task."""
        tasks = [each["Properties"] for each in self.all("AWS::ECS::TaskDefinition")]
        containers = [each for task in tasks for each in task["ContainerDefinitions"]]
        (found,) = [each for each in containers if each["Name"] == name]
        return dict(found)

    def may(self, role: str) -> dict[str, list[Any]]:
        """Action -> resources, of the roles whose logical id holds `role`."""
        allowed: dict[str, list[Any]] = {}
        for policy in self.all("AWS::IAM::Policy"):
            if not any(role in each["Ref"] for each in policy["Properties"]["Roles"]):
                continue
            for statement in policy["Properties"]["PolicyDocument"]["Statement"]:
                for action in _listed(statement["Action"]):
                    allowed.setdefault(action, []).extend(_listed(statement["Resource"]))
        return allowed


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def synthesise(folder: Path, context: Mapping[str, str]) -> Synthesised:
    """What `cdk synth` with this context writes."""
    os.environ["JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION"] = "1"
    import aws_cdk as cdk
    import cdk_nag

    from deploy.aws.app import build
    from deploy.aws.settings import read

    app = cdk.App(outdir=str(folder))
    build(app, read({**NEEDED, **context}))
    cdk.Validations.of(app).add_plugins(cdk_nag.AwsSolutionsChecks(app))
    with contextlib.suppress(RuntimeError):  # there are findings; which, the report says
        app.synth()
    paths = tuple(folder / f"{name}.template.json" for name in ("firstword-base", "firstword"))
    base, main = (json.loads(path.read_text("utf-8")) for path in paths)
    report = json.loads((folder / "validation-report.json").read_text("utf-8"))
    return Synthesised(base, main, frozenset(_findings(report)), paths)


def _findings(report: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for plugin in report["pluginReports"]:
        for violation in plugin["violations"]:
            for construct in violation["violatingConstructs"]:
                yield violation["ruleName"].partition("[")[0], construct["constructPath"]
