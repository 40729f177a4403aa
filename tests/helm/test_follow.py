"""Followers beside the service: each pod has its own tables, and its own place in the source."""

import os
import subprocess
import time

import pytest

from chart import one, refused, render, settings_file
from matrix import FOLLOW, TLS, joined


def stateful(values=None):
    return one(render(joined(FOLLOW, values or {})), "StatefulSet")["spec"]


def followers(values=None):
    spec = stateful(values)["template"]["spec"]
    return [container for container in spec["containers"] if container["name"].startswith("follow-")]


def test_tables_are_each_pods_own_and_stay():
    spec = stateful()
    [claim] = spec["volumeClaimTemplates"]
    assert claim["metadata"]["name"] == "tables" and claim["spec"]["accessModes"] == ["ReadWriteOnce"]
    service = spec["template"]["spec"]["containers"][0]
    assert {"name": "tables", "mountPath": "/tables"} in service["volumeMounts"]
    assert 'models_dir = "/tables"' in settings_file(render(FOLLOW))
    assert "models_dir" not in settings_file(render())
    scaled = render(joined(FOLLOW, {"autoscaling": {"enabled": True}}))
    assert one(scaled, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["kind"] == "StatefulSet"
    assert one(scaled, "Service", "-headless")["metadata"]["name"] == spec["serviceName"]
    [spread] = [key for rule in spec["template"]["spec"]["topologySpreadConstraints"][:1] for key in rule["matchLabelKeys"]]
    assert spread == "controller-revision-hash"


def test_each_replica_has_a_slot_of_its_own():
    first, second = followers()
    assert [one["name"] for one in (first, second)] == ["follow-0-items", "follow-1-my-topic-1"]
    assert "--slot=k_kindred_items_$(POD_INDEX)" in first["args"] and not any("slot" in word for word in second["args"])
    [index] = [variable for variable in first["env"] if variable["name"] == "POD_INDEX"]
    assert index["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['apps.kubernetes.io/pod-index']"
    tables = [{"model": "A.b-c" + "d" * 50, "source": "postgresql://db/shop"}]
    long = joined(FOLLOW, {"fullnameOverride": "k-" + "x" * 45, "follow": {"tables": tables}})
    [follower] = [c for c in one(render(long), "StatefulSet")["spec"]["template"]["spec"]["containers"] if c["name"] != "kindred"]
    [slot] = [word for word in follower["args"] if word.startswith("--slot=")]
    slot = slot.removeprefix("--slot=").replace("$(POD_INDEX)", "12345")
    assert len(slot) <= 63 and slot == slot.lower() and slot.replace("_", "").isalnum(), slot
    assert len(follower["name"]) <= 63


def test_one_that_ends_is_started_again_and_one_that_is_told_to_stop_stops(tmp_path):
    """The container's own command, with a program in the place of `kindred`."""
    [first, _] = followers()
    program, said = tmp_path / "kindred", tmp_path / "said"
    program.write_text(f'#!/bin/sh\necho "$@" >> {said}\n[ $(wc -l < {said}) -ge 2 ] || exit 1\nexec sleep 60.125\n')
    program.chmod(0o755)
    command = [word.replace("sleep 10", "sleep 0.1") for word in first["command"]]
    arguments = [word.replace("$(POD_INDEX)", "1") for word in first["args"]]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    process = subprocess.Popen([*command, *arguments], env=environment)
    for _ in range(100):
        if said.exists() and said.read_text().count("\n") == 2:
            break
        time.sleep(0.1)
    assert said.read_text().splitlines() == [f"follow {' '.join(arguments)}"] * 2
    time.sleep(0.2)
    assert process.poll() is None
    process.terminate()
    process.wait(5)
    # On a busy machine, the program ends a moment after the shell that told it to.
    for _ in range(50):
        left = subprocess.run(["pgrep", "-f", "^sleep 60.125$"], capture_output=True)
        if left.returncode == 1:
            break
        time.sleep(0.1)
    assert left.returncode == 1


@pytest.mark.parametrize("values, reason", [
    (joined(FOLLOW, {"apiKeys": {"existingSecret": ""}}), "follow.tables needs API keys"),
    (joined(FOLLOW, TLS), "for which no certificate is"),
    ({**FOLLOW, "networkPolicy": {}}, "add a rule for it to networkPolicy.egress"),
    (joined(FOLLOW, {"follow": {"tables": FOLLOW["follow"]["tables"] * 2}}), "is there twice"),
    (joined(FOLLOW, {"strategy": {"maxSurge": 2}}), "replaced in their places"),
    (joined(FOLLOW, {"follow": {"tables": [{"model": "a", "source": "mysql://db/shop"}]}}), "source"),
])  # fmt: skip
def test_what_can_not_work_is_refused_with_the_cure(values, reason):
    assert reason in refused(values)
