"""Renders deploy/helm/kindred, and finds things in what is rendered."""

import functools
import json
import os
import pathlib
import subprocess

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
CHART = TOP / "deploy/helm/kindred"
HELM = os.environ.get("HELM", str(TOP / ".tools/helm/bin/helm"))
HELM3 = os.environ.get("HELM3", str(TOP / ".tools/helm/bin/helm3"))

# One that is never read: rendering needs no file.
SHA256 = "0123456789abcdef" * 4


def helm(*arguments, values=None, program=HELM):
    """Runs helm with these values. Returns its outcome."""
    command = [program, *arguments, *(["--values", "-"] if values else [])]
    return subprocess.run(command, input=json.dumps(values or {}), capture_output=True, text=True, timeout=120)


@functools.cache
def _rendered(values, release, program):
    done = helm("template", release, str(CHART), values=json.loads(values), program=program)
    assert done.returncode == 0, done.stderr
    return done.stdout


def render(values=None, release="k", program=HELM):
    """The objects that these values render to."""
    text = _rendered(json.dumps(values or {}, sort_keys=True), release, program)
    # libyaml's parser, which PyYAML's packages have: the other takes most of the matrix's time.
    return [found for found in yaml.load_all(text, Loader=yaml.CSafeLoader) if found]


def refused(values):
    """Why these values are refused."""
    done = helm("template", "k", str(CHART), values=values)
    assert done.returncode != 0, f"accepted: {values}"
    return done.stderr


def one(objects, kind, suffix=""):
    """The object of this kind whose name ends with `suffix`."""
    found = [o for o in objects if o["kind"] == kind and o["metadata"]["name"].endswith(suffix)]
    assert found, f"no {kind} *{suffix}"
    return found[0]


def pods(objects):
    """The specifications of all pods, by their object's name."""
    for found in objects:
        if found["kind"] == "Pod":
            yield found["metadata"]["name"], found["metadata"], found["spec"]
        elif found["kind"] in ("Deployment", "StatefulSet"):
            template = found["spec"]["template"]
            # Each pod has a claim of its own as a volume.
            claims = [claim["metadata"]["name"] for claim in found["spec"].get("volumeClaimTemplates", [])]
            volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
            yield found["metadata"]["name"], template["metadata"], {
                **template["spec"], "volumes": template["spec"]["volumes"] + volumes
            }


def workload(objects):
    """The Deployment, or the StatefulSet of tables that follow."""
    return one(objects, "StatefulSet" if any(found["kind"] == "StatefulSet" for found in objects) else "Deployment")


def pod(values=None):
    """The pod of the service."""
    return one(render(values), "Deployment")["spec"]["template"]["spec"]


def containers(spec):
    return [*spec.get("initContainers", []), *spec["containers"]]


def settings_file(objects):
    """The text of the settings file."""
    [found] = [o["data"]["kindred.toml"] for o in objects if "kindred.toml" in o.get("data", {})]
    return found
