"""The image, the services, the workflow and the citation hold what they say, as far as it shows without Docker."""

from __future__ import annotations

import fnmatch
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import askance
from askance.cli import main
from tests.dockerfile import ROOT, copied, instructions
from tests.slow import environments

SECRET = re.compile(r"KEY|TOKEN|PASSWORD")


def of_services() -> Mapping[str, Any]:
    return yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))


def test_an_image_takes_in_sources_alone() -> None:
    ignored, *let_through = [
        line for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line and line[0] != "#"
    ]
    sources = [source for each, _ in copied() for source in each]

    assert (ignored, let_through[-1]) == ("*", "**/__pycache__")
    assert [f"!{source}" for source in sources] == [*let_through[:3], "!docs/reference", "!askance"]
    assert [source for source in sources if not (ROOT / source).exists()] == []
    for private in (".askance", ".env", "askance.toml", ".git", ".venv", "tests"):
        assert not any(fnmatch.fnmatch(private, rule[1:]) for rule in let_through if rule[0] == "!")


def test_an_image_runs_as_no_root_and_holds_no_secret() -> None:
    *_, (_, last) = [(word, rest) for word, rest in instructions() if word == "USER"]
    stages = [rest for word, rest in instructions() if word == "FROM"]

    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last)
    assert len(stages) == 2
    assert not [rest for word, rest in instructions() if word in {"ARG", "ENV"} and SECRET.search(rest)]
    assert not [word for word, _ in instructions() if word == "ADD"]


def test_services_are_open_to_this_machine_alone_and_hold_no_secret() -> None:
    services = of_services()["services"]

    assert {name: service.get("profiles") for name, service in services.items()} == {
        "records": None,
        "model": ["model"],
        "askance": ["command"],
    }
    assert {
        port.rpartition(":")[0].partition(":")[0] for each in services.values() for port in each.get("ports", ())
    } == {"127.0.0.1"}
    values = [pair for service in services.values() for pair in service.get("environment", {}).items()]
    assert [
        (name, value) for name, value in values if SECRET.search(name) and value is not None and value[:2] != "${"
    ] == []


def test_a_citation_is_of_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))

    assert (citation["version"], citation["license"]) == (askance.__version__, "MIT")


def workflow() -> Mapping[Any, Any]:
    return yaml.safe_load((ROOT / "examples" / "verify-pack.yml").read_text("utf-8"))


def test_a_workflow_has_no_key_and_installs_this_version() -> None:
    steps = workflow()["jobs"]["replay"]["steps"]

    assert workflow()["permissions"] == {"contents": "read"}
    assert "secrets." not in (ROOT / "examples" / "verify-pack.yml").read_text("utf-8")
    assert shlex.split(steps[2]["run"]) == ["python", "-m", "pip", "install", f"askance=={askance.__version__}"]


@pytest.mark.parametrize("damaged", [False, True])
def test_the_command_of_a_workflow_ends_well_for_a_sound_pack_alone(own_place: Path, *, damaged: bool) -> None:
    (own_place / "examples").mkdir()
    pack = own_place / "examples" / "demo.pack"
    content = (ROOT / "examples" / "demo.pack").read_bytes()
    pack.write_bytes(content[:-1] if damaged else content)
    command, *words = shlex.split(workflow()["jobs"]["replay"]["steps"][3]["run"])
    with pytest.raises(SystemExit) as ended:
        main(words)

    assert command == "askance"
    assert (ended.value.code == 0) is not damaged
    assert bool([*Path("tables").glob("*")]) is not damaged


# --- with packages, which are unpacked and not run ---


@pytest.mark.slow(group="wheel")
@pytest.mark.parametrize(
    ("package", "schema", "file"),
    [
        ("docker-compose==1.29.2", "compose/config/compose_spec.json", "compose.yaml"),
        ("cffconvert==2.0.0", "cffconvert/schemas/1.2.0/schema.json", "CITATION.cff"),
    ],
    ids=["compose", "citation"],
)
def test_a_file_is_what_its_schema_says(package: str, schema: str, file: str, tmp_path: Path) -> None:
    environments.packages_into(tmp_path, [package])
    content = yaml.safe_load((ROOT / file).read_text("utf-8"))
    checker: Any = jsonschema.Draft7Validator(json.loads((tmp_path / schema).read_text("utf-8")))

    assert [each.message for each in checker.iter_errors(content)] == []
    assert [*checker.iter_errors({**content, "restrat": "always"})] != []
