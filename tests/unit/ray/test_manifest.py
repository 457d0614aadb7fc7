"""The manifest of docs/cluster.md has only fields that KubeRay's RayCluster and Kubernetes' pods know, of their types."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tools import ROOT

WORD, NUMBER = {"type": "string"}, {"type": "integer", "minimum": 0}
WORDS = {"type": "object", "additionalProperties": WORD}


def record(required: str = "", **fields: Any) -> dict[str, Any]:
    """An object with these fields and no others."""
    return {"type": "object", "properties": fields, "required": required.split(), "additionalProperties": False}


def listed(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": 1}


# The fields of `ray.io/v1` that a crawl may need, and those of a pod. Quantities of resources and the parameters of `ray start` are
# strings: a bare 2 or 0 there is refused by the operator.
KEY = record("secretKeyRef", secretKeyRef=record("name key", name=WORD, key=WORD))
VARIABLE = record("name", name=WORD, value=WORD, valueFrom=KEY)
CONTAINER = record(
    "name image",
    name=WORD,
    image=WORD,
    command=listed(WORD),
    args=listed(WORD),
    env=listed(VARIABLE),
    resources=record(requests=WORDS, limits=WORDS),
    volumeMounts=listed(record("name mountPath", name=WORD, mountPath=WORD)),
)
POD = record("containers", containers=listed(CONTAINER), nodeSelector=WORDS, terminationGracePeriodSeconds=NUMBER)
TEMPLATE = record("spec", metadata=record(labels=WORDS), spec=POD)
HEAD = record("template", rayStartParams=WORDS, template=TEMPLATE, serviceType=WORD)
GROUP = record(
    "groupName template",
    groupName=WORD,
    rayStartParams=WORDS,
    template=TEMPLATE,
    numOfHosts=NUMBER,
    **dict.fromkeys(("replicas", "minReplicas", "maxReplicas"), NUMBER),
)
CLUSTER = record(
    "apiVersion kind metadata spec",
    apiVersion={"const": "ray.io/v1"},
    kind={"const": "RayCluster"},
    metadata=record("name", name={"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"}),
    spec=record(
        "headGroupSpec",
        headGroupSpec=HEAD,
        workerGroupSpecs=listed(GROUP),
        rayVersion=WORD,
        enableInTreeAutoscaling={"type": "boolean"},
    ),
)


def manifest() -> Any:
    text = Path(ROOT / "docs/cluster.md").read_text(encoding="utf-8")
    return yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])


def test_the_manifest_has_fields_that_the_operator_knows() -> None:
    jsonschema.validate(manifest(), CLUSTER)


@pytest.mark.parametrize(
    ("field", "value"), [("headGroupSpecs", {}), ("headGroupSpec", {"rayStartParams": {"num-cpus": 0}})]
)
def test_a_misspelt_field_and_a_number_without_quotes_are_found(field: str, value: Any) -> None:
    found = manifest()
    found["spec"][field] = {**found["spec"].get(field, {}), **value}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(found, CLUSTER)


def test_the_agents_of_the_command_fit_into_its_nodes_and_the_head_runs_none() -> None:
    spec = manifest()["spec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    [group] = spec["workerGroupSpecs"]
    text = Path(ROOT / "docs/cluster.md").read_text(encoding="utf-8").partition("### On Kubernetes")[2]
    agents = int(text.partition("--agents ")[2].split()[0])
    assert agents <= group["replicas"] * int(group["rayStartParams"]["num-cpus"])
