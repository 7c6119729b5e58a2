"""The image and the development container as their files state them: pinned, without root, layers that last, nothing of other hosts.

Whether they build is seen by .ci/run where docker runs.
"""

import json
import re

import pytest

from tests.sources import PACKAGES, ROOT, text

Stages = dict[str, list[tuple[str, str]]]
PINNED = re.compile(r"[\w/.-]+:\d+\.\d+\.\d+[\w.-]*")
FINAL = ""  # the stage without a name, which `docker build` makes
ELSEWHERE = re.compile(r"https?://|--(?:extra-)?index-url|--trusted-host|--find-links|:latest")


def stages(dockerfile: str) -> Stages:
    """Instructions of each stage as pairs of a word and the rest, continued lines joined, comments left out."""
    lines = "\n".join(line for line in dockerfile.splitlines() if not line.lstrip().startswith("#"))
    found: Stages = {}
    for line in filter(None, (each.strip() for each in re.sub(r"\\\n", " ", lines).splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            image, _, name = rest.partition(" AS ")
            found[name] = [("FROM", image)]
        else:
            next(reversed(found.values())).append((word, rest))
    return found


def chain(made: Stages, name: str) -> list[tuple[str, str]]:
    """What a stage is made by, those it builds on first."""
    (_, base), *own = made[name]
    return [*(chain(made, base) if base in made else [("FROM", base)]), *own]


def faults(dockerfile: str) -> list[str]:
    """What is wrong with a Dockerfile."""
    made = stages(dockerfile)
    final = chain(made, FINAL)
    wrong = [
        f"not pinned: {image}" for name in made for word, image in chain(made, name)[:1] if not PINNED.fullmatch(image)
    ]
    wrong += [f"other hosts: {found}" for found in ELSEWHERE.findall(dockerfile)]
    users = {
        name: [rest for word, rest in chain(made, name) if word == "USER"][-1:] for name in made if name != "packages"
    }
    wrong += [f"{name or 'image'}: root" for name, user in users.items() if user in ([], ["root"], ["0"])]
    if ("ENTRYPOINT", '["plas"]') not in final:
        wrong.append("no plas to enter by")
    sources = [i for i, (word, rest) in enumerate(final) if word == "COPY" and rest.split()[0] in (*PACKAGES, ".")]
    needed = [i for i, (word, rest) in enumerate(final) if word == "RUN" and "-r needed.txt" in rest]
    if not needed or not sources or max(needed) > min(sources):
        wrong.append("a change of the code installs every dependency again")
    return wrong


def test_the_dockerfile_is_pinned_without_root_in_lasting_layers() -> None:
    assert faults(text("Dockerfile")) == []


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        (":3.13.7-slim-bookworm", ":3.13-slim", "not pinned"),
        ("USER plas\nWORKDIR", "WORKDIR", "image: root"),
        ('["plas"]', '["python"]', "no plas"),
        ("COPY pyproject.toml constraints.txt ./", "COPY nas nas\nCOPY pyproject.toml constraints.txt ./", "again"),
        ("--no-deps .", "--index-url https://example.org/simple .", "other hosts"),
    ],
)
def test_a_worse_dockerfile_is_seen(before: str, after: str, fault: str) -> None:
    good = text("Dockerfile")
    assert before in good
    assert fault in "; ".join(faults(good.replace(before, after)))


def test_the_context_holds_what_is_copied_and_nothing_else() -> None:
    copied = {
        name
        for stage in stages(text("Dockerfile")).values()
        for word, rest in stage
        if word == "COPY"
        for name in rest.split()[:-1]
    }
    lines = text(".dockerignore").splitlines()
    assert lines[1] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied
    assert all((ROOT / name).exists() for name in copied)
    assert {*PACKAGES, "configs"} <= copied


def test_the_development_container_is_a_stage_of_the_dockerfile_with_its_user() -> None:
    told = json.loads(text(".devcontainer/devcontainer.json"))
    build = told["build"]
    folder = ROOT / ".devcontainer"
    assert (folder / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (folder / build["context"]).resolve() == ROOT
    stage = chain(stages(text("Dockerfile")), build["target"])
    assert ("USER", told["remoteUser"]) in stage
    assert any(word == "RUN" and f" {told['remoteUser']} " in f"{rest} " for word, rest in stage)
    assert "-c constraints.txt" in told["postCreateCommand"]


def test_ci_builds_both_or_says_that_it_cannot() -> None:
    script = text(".ci/run")
    assert "docker build -q --target development" in script
    assert 'echo "Container: NOT BUILT, no docker daemon here"' in script
