"""What every combination of values must hold: it renders, every object is valid for three versions of Kubernetes, and the
policies of docs/kubernetes.md are kept."""

import functools
import json
import shutil

import pytest
from kubernetes_validate import utils
from kubernetes_validate.utils import SchemaNotFoundError, ValidationError, validate

from chart import CHART, SHA256, TOP, containers, helm, one, pods, render, workload
from matrix import MATRIX

# The oldest that the chart allows, one in between, and the newest of kubernetes-validate.
VERSIONS = ("1.30", "1.34", "1.37")
# Their schemas belong to the Prometheus operator; test_monitoring.py looks at them.
CUSTOM = {"ServiceMonitor", "PrometheusRule"}

utils.schema_contents = functools.cache(utils.schema_contents)


@functools.cache
def fault(text, version):
    """What is wrong with an object for this version, in the strict sense: unknown fields are wrong as well."""
    try:
        return validate(json.loads(text), version, strict=True) != version
    except ValidationError as error:
        return f"{'.'.join(map(str, error.path))}: {error.message}"


def faults(objects, version):
    texts = [json.dumps(found, sort_keys=True) for found in objects if found["kind"] not in CUSTOM]
    return [fault(text, version) for text in texts if fault(text, version)]


def test_there_are_enough_combinations():
    assert len(MATRIX) >= 40
    assert len({json.dumps(values, sort_keys=True) for values in MATRIX.values()}) == len(MATRIX)
    page = (TOP / "docs/kubernetes.md").read_text()
    assert f"{len(MATRIX)} combinations" in page and all(version in page for version in VERSIONS)


@pytest.mark.parametrize("name", MATRIX)
def test_valid(name):
    objects = render(MATRIX[name])
    assert objects
    for version in VERSIONS:
        assert not faults(objects, version), version
    names = [(found["kind"], found["metadata"]["name"]) for found in objects]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 63 for _, name in names)


def test_what_is_wrong_is_found():
    deployment = one(render(), "Deployment")
    for change in (
        lambda d: d["spec"]["template"]["spec"].update(hostnetwork=True),
        lambda d: d["spec"].update(replicas="two"),
        lambda d: d["spec"].pop("selector"),
        lambda d: d["spec"]["template"]["spec"]["containers"][0].pop("name"),
    ):
        wrong = json.loads(json.dumps(deployment))
        change(wrong)
        for version in VERSIONS:
            assert faults([wrong], version), version
    with pytest.raises(SchemaNotFoundError):
        fault(json.dumps({"apiVersion": "apps/v1beta1", "kind": "Deployment"}), VERSIONS[0])


@pytest.mark.parametrize("name", MATRIX)
def test_policies(name):
    objects = render(MATRIX[name])
    for _, _, spec in pods(objects):
        assert spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False
        security = spec["securityContext"]
        assert security["runAsNonRoot"] is True and security["runAsUser"] == 65532
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        # The volumes of the restricted Pod Security Standard that the chart has a use for.
        kinds = {kind for volume in spec.get("volumes", []) for kind in volume if kind != "name"}
        assert kinds <= {"configMap", "emptyDir", "secret", "persistentVolumeClaim"}
        for container in containers(spec):
            security = container["securityContext"]
            assert security == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}
            }, container["name"]
            assert "memory" in container["resources"]["limits"] and "requests" in container["resources"]
            image = container["image"]
            assert "@sha256:" in image or (":" in image and not image.endswith(":latest")), image
            mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
            assert mounted <= {volume["name"] for volume in spec.get("volumes", [])}


@pytest.mark.parametrize("name", MATRIX)
def test_objects_fit_together(name):
    objects = render(MATRIX[name])
    deployment = workload(objects)
    template = deployment["spec"]["template"]
    selector = deployment["spec"]["selector"]["matchLabels"]

    def selects(labels, of):
        return all(of.get(key) == value for key, value in labels.items())

    assert selects(selector, template["metadata"]["labels"])
    for found in objects:
        spec = found.get("spec", {})
        for labels in (
            spec.get("selector") if found["kind"] == "Service" else None,
            spec["selector"]["matchLabels"] if found["kind"] == "PodDisruptionBudget" else None,
            spec["podSelector"]["matchLabels"] if found["kind"] == "NetworkPolicy" else None,
        ):
            if labels:
                assert selects(labels, template["metadata"]["labels"])
                # A test's pod answers no requests.
                assert not selects(labels, one(objects, "Pod", "-test")["metadata"]["labels"])
    container = template["spec"]["containers"][0]
    ports = {port["name"] for port in container["ports"]}
    for service in (found for found in objects if found["kind"] == "Service"):
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= ports
    names = {found["metadata"]["name"] for found in objects if found["kind"] == "ConfigMap"}
    used = {v["configMap"]["name"] for v in template["spec"]["volumes"] if "configMap" in v}
    assert used <= names
    # Autoscaler and Deployment do not both decide the number of pods.
    assert ("replicas" in deployment["spec"]) != any(f["kind"] == "HorizontalPodAutoscaler" for f in objects)


def test_without_values_there_are_core_kinds_only():
    kinds = {(found["apiVersion"], found["kind"]) for found in render()}
    assert kinds == {
        ("v1", "ConfigMap"), ("v1", "Pod"), ("v1", "Service"), ("v1", "ServiceAccount"), ("apps/v1", "Deployment"),
        ("policy/v1", "PodDisruptionBudget"), ("networking.k8s.io/v1", "NetworkPolicy"),
    }


def test_lint_finds_no_fault():
    for values in ({}, MATRIX["everything-fetched"], MATRIX["everything-on-volume"]):
        done = helm("lint", "--strict", str(CHART), values=values)
        assert done.returncode == 0 and "0 chart(s) failed" in done.stdout, done.stdout + done.stderr


def test_the_folder_is_all_that_the_chart_needs(tmp_path):
    """Without what is beside it, and without links, which Argo CD refuses if they lead out of a folder."""
    assert not [path for path in CHART.rglob("*") if path.is_symlink()]
    values = MATRIX["everything-fetched"]
    shutil.copytree(CHART, tmp_path / "kindred", symlinks=True)
    alone = helm("template", "k", str(tmp_path / "kindred"), values=values)
    assert alone.returncode == 0 and "symbolic link" not in alone.stderr, alone.stderr
    assert alone.stdout == helm("template", "k", str(CHART), values=values).stdout


def test_a_package_has_the_rules(tmp_path):
    done = helm("package", str(CHART), "--destination", str(tmp_path))
    assert done.returncode == 0, done.stderr
    [package] = tmp_path.glob("kindred-*.tgz")
    values = MATRIX["prometheus-rule"]
    inside = helm("template", "k", str(package), values=values)
    assert inside.returncode == 0 and "alert: KindredAbsent" in inside.stdout
    assert inside.stdout == helm("template", "k", str(CHART), values=values).stdout
    assert SHA256 not in inside.stdout
