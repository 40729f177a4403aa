"""Values that are refused, with the cure, and what single values decide."""

import json
import re
import tomllib

import pytest
import yaml

from chart import CHART, SHA256, TOP, containers, one, pod, refused, render, settings_file, workload
from matrix import FETCHED, FETCHED_HEAD, GPU, INGRESS, KEYS, MATRIX, ON_VOLUME, joined

SETTINGS = tomllib.loads((TOP / "config/kindred.toml").read_text())
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
# Settings that the chart derives from other values. A test of the crate `server` compares the schema with the settings.
DERIVED = SETTINGS.keys() - SCHEMA["properties"]["config"]["properties"].keys()


@pytest.mark.parametrize(
    "values, said",
    [
        ({"replicas": 3}, "replicas"),
        ({"replicaCount": "3"}, "/replicaCount"),
        ({"nameOverride": "Words"}, "/nameOverride"),
        ({"fullnameOverride": "my_words"}, "/fullnameOverride"),
        ({"config": {"thread": 3}}, "thread"),
        ({"config": {"listen": "0.0.0.0:1"}}, "listen"),
        ({"config": {"threads": "3"}}, "/config/threads"),
        ({"models": [{"name": "en"}]}, "/models/0"),
        ({"models": [{"name": "en", "url": "https://example.org/a"}]}, "sha256"),
        ({"models": [joined(FETCHED, {"url": "ftp://example.org/a"})]}, "/models/0/url"),
        ({"models": [joined(FETCHED, {"sha256": "abc"})]}, "/models/0/sha256"),
        ({"models": [joined(FETCHED, {"path": "a"})]}, "/models/0"),
        (joined(ON_VOLUME, {"models": [{"name": "en", "path": "../etc"}]}), "/models/0/path"),
        (joined(ON_VOLUME, {"models": [{"name": "en", "path": "/etc"}]}), "/models/0/path"),
        (joined(ON_VOLUME, {"models": [{"name": "a=b", "path": "a"}]}), "/models/0/name"),
        ({"models": [{"name": "en", "path": "a"}]}, "set storage.existingClaim"),
        ({"models": [FETCHED], "storage": {"existingClaim": "m"}}, "storage.readOnly=false"),
        ({"models": [FETCHED, FETCHED]}, "give each its own"),
        ({"strategy": {"maxSurge": 0}}, "raise one of them"),
        ({"strategy": {"maxSurge": "0%", "maxUnavailable": 0}}, "raise one of them"),
        ({"drain": {"timeoutSeconds": 29}}, "config.request_timeout_ms (30000)"),
        ({"config": {"request_timeout_ms": 60000}}, "drain.timeoutSeconds (30)"),
        (joined(KEYS, {"config": {"public_routes": ["/health/live"]}}), "lacks /health/ready"),
        (
            joined(KEYS, {"config": {"public_routes": ["/health/live", "/health/ready"]},
                          "metrics": {"serviceMonitor": {"enabled": True}}}),
            "lacks /metrics",
        ),
        ({"autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 3}}, "maxReplicas (3): lower the first"),
        (joined(KEYS, {"config": {"public_routes": []}}), "lacks /health/live"),
        ({"extraEnv": [{"name": "KINDRED_REQUEST_TIMEOUT_MS", "value": "60000"}]}, "extraEnv KINDRED_REQUEST_TIMEOUT_MS (60000)"),
        ({"extraEnv": [{"name": "KINDRED_BODY_MEMORY_MB", "value": "4096"}]}, "below 4416Mi: extraEnv KINDRED_BODY_MEMORY_MB (4096)"),
        # Kubernetes takes texts only.
        ({"extraEnv": [{"name": "KINDRED_BODY_MEMORY_MB", "value": 64}]}, "/extraEnv/0/value"),
        ({"extraEnv": [{"nmae": "TZ", "value": "UTC"}]}, "/extraEnv/0"),
        ({"extraEnv": [{"name": "KINDRED_LISTEN", "value": "[::]:8080"}]}, "set listenAddress instead"),
        ({"extraEnv": [{"name": "KINDRED_DRAIN_DELAY_MS", "value": "0"}]}, "set drain.delaySeconds instead"),
        ({"config": {"device": "cuda:all"}}, "set gpu.count"),
        ({"topologySpread": {"hosts": "Always"}}, "/topologySpread/hosts"),
        ({"tls": {"existingSecret": "Not A Name"}}, "/tls/existingSecret"),
        ({"config": {"traces_endpoint": "collector:4318"}}, "write it like http://collector:4318"),
        ({"resources": {"limits": {"memory": "575Mi"}}}, "is below 576Mi: config.body_memory_mb (256)"),
        ({"resources": {"limits": {"memory": "603M"}}}, "is below 576Mi"),
        ({"resources": {"limits": {"memory": 603979775}}}, "raise the limit, or lower the settings"),
        ({"resources": {"limits": {"memory": "0.5Gi"}}}, "is below 576Mi"),
        ({"config": {"body_memory_mb": 1024, "answer_memory_mb": 512}}, "is below 1600Mi"),
        # Settings that are left to the service have its defaults.
        ({"config": {"body_memory_mb": None, "answer_memory_mb": None}, "resources": {"limits": {"memory": "2G"}}},
         "is below 2112Mi"),
        ({"resources": {"limits": {"memory": "much"}}}, "is no quantity"),
        ({"resources": {"limits": {"memory": "1.5Gib"}}}, "is no quantity"),
    ],
)
def test_refused(values, said):
    assert said in refused(values)


def test_the_schema_has_every_value():
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert values.keys() == SCHEMA["properties"].keys() - {"global"}
    for key, value in values.items():
        known = SCHEMA["properties"][key].get("properties")
        if isinstance(value, dict) and known and key != "config":
            assert value.keys() == known.keys(), key


def test_every_setting_arrives_unchanged():
    config = {key: value for key, value in SETTINGS.items() if key not in DERIVED}
    config |= {"log_level": 'warn,access=info # "\\ <&> é', "placement": ["replicate", "en=shard"]}
    # With a memory limit that holds the defaults of the settings.
    found = tomllib.loads(settings_file(render({"config": config, "resources": {"limits": {"memory": "3Gi"}}})))
    assert {key: found[key] for key in config} == config
    assert all(type(found[key]) is type(config[key]) for key in config)
    # Large numbers keep their digits.
    large = {"engine_hang_timeout_ms": 123_456_789_012}
    assert tomllib.loads(settings_file(render({"config": large}))) | large == tomllib.loads(
        settings_file(render({"config": large}))
    )
    assert found.keys() - config.keys() <= DERIVED


@pytest.mark.parametrize("name", MATRIX)
def test_the_grace_period_covers_the_drain(name):
    spec = workload(render(MATRIX[name]))["spec"]["template"]["spec"]
    settings = tomllib.loads(settings_file(render(MATRIX[name])))
    stop = spec["containers"][0].get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
    drain = stop + (settings["drain_delay_ms"] + settings["drain_timeout_ms"]) / 1000
    assert drain < spec["terminationGracePeriodSeconds"] <= drain + 15
    assert settings["drain_timeout_ms"] >= settings.get("request_timeout_ms", SETTINGS["request_timeout_ms"])


@pytest.mark.parametrize("name", MATRIX)
def test_probes(name):
    objects = render(MATRIX[name])
    container = workload(objects)["spec"]["template"]["spec"]["containers"][0]
    settings = SETTINGS | tomllib.loads(settings_file(objects))
    routes = {"startupProbe": "/health/ready", "readinessProbe": "/health/ready", "livenessProbe": "/health/live"}
    api = (TOP / "openapi.yaml").read_text()
    for probe, route in routes.items():
        get = container[probe]["httpGet"]
        assert get["path"] == route and f"\n  {route}:\n" in api
        assert get["scheme"] == ("HTTPS" if settings.get("tls_certificate") else "HTTP")
        assert route in settings["public_routes"]
        if route == "/health/ready":
            assert container[probe]["timeoutSeconds"] > settings["readiness_timeout_ms"] / 1000


def startup_seconds(values):
    probe = pod(values)["containers"][0]["startupProbe"]
    return probe["periodSeconds"] * probe["failureThreshold"]


def test_the_startup_probe_is_sized_for_the_models():
    sized = lambda *sizes: joined(ON_VOLUME, {"models": [
        {"name": f"m{n}", "path": f"m{n}", "sizeGi": size} for n, size in enumerate(sizes)]})
    assert startup_seconds({}) == 60
    assert startup_seconds(sized(0.5)) == 76
    assert startup_seconds(sized(2.5, 10)) == 60 + 375 + 1
    assert startup_seconds(ON_VOLUME) == 90
    assert startup_seconds(joined(sized(100), {"startupSeconds": 601})) == 602
    deadline = one(render(sized(200)), "Deployment")["spec"]["progressDeadlineSeconds"]
    assert deadline > startup_seconds(sized(200)) > 6000


def test_a_surge_needs_a_spare_gpu():
    rolling = lambda values: one(render(values), "Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert rolling({}) == {"maxSurge": 1, "maxUnavailable": 0}
    assert rolling(GPU) == {"maxSurge": 0, "maxUnavailable": 1}
    assert rolling(MATRIX["gpu-with-spare"]) == {"maxSurge": 1, "maxUnavailable": 0}
    assert rolling(MATRIX["surge-share"]) == {"maxSurge": "25%", "maxUnavailable": "25%"}


def test_gpus_are_asked_for_and_used():
    for count, device in ((1, "cuda"), (4, "cuda:all")):
        values = {"gpu": {"count": count}}
        container = pod(values)["containers"][0]
        assert container["resources"]["limits"]["nvidia.com/gpu"] == count
        assert container["image"] == "kindred:cuda"
        assert tomllib.loads(settings_file(render(values)))["device"] == device
        assert pod(values)["tolerations"][-1]["key"] == "nvidia.com/gpu"
    assert "nvidia.com/gpu" not in pod()["containers"][0]["resources"]["limits"]
    assert tomllib.loads(settings_file(render()))["device"] == "cpu"
    # Models are prepared without a GPU.
    prepare = containers(pod(joined(GPU, {"models": [FETCHED]})))[1]
    assert "nvidia.com/gpu" not in prepare["resources"]["limits"]
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in prepare["env"]


def test_threads_follow_the_requested_cpus_unless_they_are_set():
    names = lambda values: [variable["name"] for variable in pod(values)["containers"][0].get("env", [])]
    assert names({}) == ["KINDRED_THREADS"]
    assert names(MATRIX["settings"]) == []


def test_the_memory_limit_covers_the_settings():
    limit = pod()["containers"][0]["resources"]["limits"]["memory"]
    settings = SETTINGS | tomllib.loads(settings_file(render()))
    # docs/operating.md, "Memory"; idle with the built-in model, and room for a few HTTP/2 connections.
    needed = 60 + settings["body_memory_mb"] + settings["answer_memory_mb"] + 0.1 * settings["max_connections"] + 5 * 40
    assert limit == "1536Mi" and needed < 1536 * 1.048


def test_a_limit_that_holds_the_pools_is_taken_however_it_is_written():
    for memory in ("576Mi", "604M", "605000k", "589824Ki", "0.6Gi", "1e9", "1Ti", 603979776, 2_000_000_000, "604000000000m"):
        limits = pod({"resources": {"limits": {"memory": memory}}})["containers"][0]["resources"]["limits"]
        assert limits["memory"] == memory
    assert "memory" not in pod({"resources": {"limits": {"memory": None}}})["containers"][0]["resources"].get("limits", {})
    # What the chart takes for the service's defaults.
    assert SETTINGS["body_memory_mb"] == SETTINGS["answer_memory_mb"] == 1024
    pod({"config": {"body_memory_mb": None, "answer_memory_mb": None}, "resources": {"limits": {"memory": "2112Mi"}}})


def test_secrets_are_mounted_so_that_changes_arrive():
    values = joined(KEYS, {"tls": {"existingSecret": "certificate"}, "apiKeys": {"key": "lines"}})
    container = pod(values)["containers"][0]
    settings = tomllib.loads(settings_file(render(values)))
    mounts = {mount["mountPath"]: mount for mount in container["volumeMounts"]}
    for key in ("api_keys_file", "tls_certificate", "tls_private_key"):
        folder = settings[key].rpartition("/")[0]
        # Kubernetes does not update a mount with subPath.
        assert "subPath" not in mounts[folder] and mounts[folder]["readOnly"]
    assert settings["api_keys_file"].endswith("/lines") and settings["watch_files_ms"] > 0


def test_pods_are_replaced_when_settings_change_and_not_otherwise():
    template = lambda values: one(render(values), "Deployment")["spec"]["template"]
    assert template({}) == template({"service": {"port": 80}})
    assert template({}) != template({"config": {"threads": 3}})
    assert template({"models": [FETCHED]}) != template({"models": [joined(FETCHED, {"sha256": SHA256[::-1]})]})


def test_the_ingress_has_all_routes_but_those_for_operators():
    paths = one(render(INGRESS), "Ingress")["spec"]["rules"][0]["http"]["paths"]
    found = {path["path"] for path in paths}
    assert {path["path"]: path["pathType"] for path in paths}["/"] == "Exact"
    routes = re.findall(r"^  (/\S*):$", (TOP / "openapi.yaml").read_text(), re.M)
    firsts = {"/" + route.split("/")[1] for route in routes}
    # Followers send to the replica itself.
    assert firsts - found == {"/metrics", "/admin", "/health", "/fold", "/sources"}
    # The explorer's files are not part of the API.
    assert found - firsts <= {"/docs", "/openapi.yaml", "/explorer", "/"}


def test_pods_open_connections_only_to_fetch():
    egress = lambda values: one(render(values), "NetworkPolicy")["spec"]["egress"]
    assert egress({}) == [] and egress(ON_VOLUME) == []
    ports = [rule["ports"] for rule in egress({"models": [FETCHED], "heads": [FETCHED_HEAD]})]
    assert [[port["port"] for port in rule] for rule in ports] == [[53, 53], [443, 9000]]
    # Traces: the name is looked up, and the collector's port is open.
    of_traces = lambda values: [port["port"] for rule in egress(values) for port in rule["ports"]]
    assert of_traces(MATRIX["traces"]) == [53, 53, 4318]
    assert of_traces(MATRIX["fetched-traces"]) == [53, 53, 443]
    assert of_traces({"config": {"traces_endpoint": "http://[fd00::1]/otlp"}}) == [53, 53, 80]
    assert of_traces({"extraEnv": [{"name": "KINDRED_TRACES_ENDPOINT", "value": "http://c:4319"}]}) == [53, 53, 4319]
    assert egress({"config": {"traces_endpoint": ""}}) == [] and egress(MATRIX["extras"]) == []
    policy = one(render(), "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"] and policy["ingress"][0]["ports"][0]["port"] == "http"


def test_one_pod_has_no_disruption_budget():
    kinds = lambda values: {found["kind"] for found in render(values)}
    assert "PodDisruptionBudget" in kinds({})
    assert "PodDisruptionBudget" not in kinds({"replicaCount": 1})
    assert "PodDisruptionBudget" not in kinds(MATRIX["scaled-by-queue"])
