"""CloudFormation as far as `firstword teardown` asks it: stacks that are there until deleted.

moto's own needs a template for every stack and a package more; the order is what counts here.
"""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError


class CloudFormation:
    """Stands in for boto3's client. `stacks` are there; a deleted one is there until waited for."""

    def __init__(self, *stacks: str) -> None:
        self.stacks = list(stacks)
        self.deleting: list[str] = []

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        if StackName not in self.stacks:
            told = f"Stack with id {StackName} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": told}}, "Describe")
        return {"Stacks": [{"StackName": StackName}]}

    def delete_stack(self, StackName: str) -> None:
        self.deleting.append(StackName)

    def get_waiter(self, name: str) -> CloudFormation:
        assert name == "stack_delete_complete"
        return self

    def wait(self, StackName: str) -> None:
        self.deleting.remove(StackName)
        self.stacks.remove(StackName)
