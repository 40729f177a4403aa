"""Combinations of values: each choice alone, those that meet in the same template together, and everything at once."""

from chart import SHA256

FETCHED = {"name": "en", "url": "https://example.org/glove.txt.gz", "sha256": SHA256, "sizeGi": 2.5}
FETCHED_HEAD = {"name": "mood", "url": "http://files.example.org:9000/mood.tar.gz", "sha256": SHA256}
ON_VOLUME = {"models": [{"name": "en", "path": "glove.6B.300d"}], "storage": {"existingClaim": "models"}}
KEYS, TLS = {"apiKeys": {"existingSecret": "keys"}}, {"tls": {"existingSecret": "certificate"}}
GPU = {"gpu": {"count": 1}, "runtimeClassName": "nvidia"}
SCALED = {"autoscaling": {"enabled": True}}
INGRESS = {"ingress": {"enabled": True, "className": "nginx"}}
METRICS = {"metrics": {name: {"enabled": True} for name in ("serviceMonitor", "prometheusRule", "dashboard")}}
FOLLOW = {
    "apiKeys": {"existingSecret": "keys"},
    "networkPolicy": {"egress": [{"ports": [{"port": 5432, "protocol": "TCP"}]}]},
    "follow": {
        "existingSecret": "followers",
        "tables": [
            {"model": "items", "source": "postgres://kindred@db/shop", "args": ["--table", "items", "--attributes", "a,b"]},
            {"model": "My.Topic_1", "source": "kafka://one:9092,two:9092/topic", "args": ["--vector", "v"]},
        ],
    },
}
CONTAINER_EXTRAS = {
    "extraEnv": [{"name": "KINDRED_LOG_LEVEL", "value": "warn"}],
    "extraVolumes": [{"name": "more", "emptyDir": {}}],
    "extraVolumeMounts": [{"name": "more", "mountPath": "/more"}],
}


def joined(*parts):
    """Values that hold all of these, maps within maps joined as well."""
    whole = {}
    for part in parts:
        for key, value in part.items():
            both = isinstance(value, dict) and isinstance(whole.get(key), dict)
            whole[key] = joined(whole[key], value) if both else value
    return whole


ALONE = {
    "defaults": {},
    "one-replica": {"replicaCount": 1},
    "no-replicas": {"replicaCount": 0},
    "names": {"nameOverride": "words", "fullnameOverride": "word-vectors"},
    "long-name": {"fullnameOverride": "k" * 63},
    "digest": {"image": {"repository": "registry.example.org/team/kindred", "digest": f"sha256:{SHA256}"}},
    "tag": {"image": {"tag": "0.1.0", "pullPolicy": "Always"}, "imagePullSecrets": [{"name": "registry"}]},
    "model-on-volume": ON_VOLUME,
    "writable-volume": joined(ON_VOLUME, {"storage": {"readOnly": False, "subPath": "kindred"}}),
    "two-models": joined(ON_VOLUME, {"models": [{"name": "en", "path": "a"}, {"name": "fr", "path": "b/c"}]}),
    "head-on-volume": joined(ON_VOLUME, {"heads": [{"name": "mood", "path": "heads/mood"}]}),
    "fetched": {"models": [FETCHED]},
    "fetched-onto-volume": {"models": [FETCHED], "storage": {"existingClaim": "models", "readOnly": False}},
    "fetched-with-arguments": {"models": [joined(FETCHED, {"prepareArgs": ["--skip-bad-rows", "--dim", "300"]})]},
    "fetched-with-head": {"models": [FETCHED], "heads": [FETCHED_HEAD]},
    "fetched-two": {"models": [FETCHED, joined(FETCHED, {"name": "fr", "sizeGi": 4})]},
    "fetched-privately": {"models": [FETCHED], "fetch": {"image": "tools:1", "curlConfigSecret": "curl"}},
    "fetched-limited": {"models": [FETCHED], "storage": {"emptyDirSizeLimit": "8Gi"}},
    "settings": {"config": {"threads": 4, "log_format": "text", "cors_origins": ["https://example.org"]}},
    "ipv6": {"listenAddress": "[::]"},
    "keys": joined(KEYS, {"apiKeys": {"key": "keys.txt"}}),
    "tls": TLS,
    "drain-at-once": {"drain": {"preStopSeconds": 0, "delaySeconds": 0}},
    "drain-long": {"drain": {"preStopSeconds": 20, "delaySeconds": 60, "timeoutSeconds": 120}},
    "startup": {"startupSeconds": 1200},
    "surge-share": {"strategy": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    "no-surge": {"strategy": {"maxSurge": 0, "maxUnavailable": 1}},
    "follow": FOLLOW,
    "follow-without-secret": {**FOLLOW, "follow": {"tables": FOLLOW["follow"]["tables"][:1]}},
    "gpu": GPU,
    "gpu-with-spare": joined(GPU, {"strategy": {"maxSurge": 1, "maxUnavailable": 0}}),
    "gpus": {"gpu": {"count": 4}, "tolerations": [{"key": "team", "operator": "Exists"}]},
    "other-gpu": {"gpu": {"count": 1, "resource": "nvidia.com/mig-1g.10gb"}},
    "traces": {"config": {"traces_endpoint": "http://collector.observability:4318"}},
    "small-memory": {"config": {"body_memory_mb": 64, "answer_memory_mb": 64},
                     "resources": {"requests": {"memory": "128M"}, "limits": {"memory": "256M"}}},
    "resources": {"resources": {"requests": {"cpu": "3500m", "memory": "8Gi"}, "limits": {"cpu": 4, "memory": "8Gi"}}},
    "node-port": {"service": {"type": "NodePort", "port": 80}},
    "load-balancer": {"service": {"type": "LoadBalancer", "annotations": {"example.org/internal": "true"}}},
    "ingress": INGRESS,
    "ingress-tls": joined(
        INGRESS,
        {"ingress": {"hosts": ["a.example.org", "b.example.org"], "annotations": {"example.org/retry": "1"},
                     "tls": [{"secretName": "a", "hosts": ["a.example.org"]}]}},
    ),
    "no-network-policy": {"networkPolicy": {"enabled": False}},
    "network-policy": {
        "networkPolicy": {
            "from": [{"namespaceSelector": {"matchLabels": {"team": "search"}}}],
            "egress": [{"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}],
        }
    },
    "no-disruption-budget": {"podDisruptionBudget": {"enabled": False}},
    "disruption-budget": {"replicaCount": 10, "podDisruptionBudget": {"maxUnavailable": "20%"}},
    "scaled": SCALED,
    "scaled-by-queue": joined(SCALED, {"autoscaling": {"targetQueueMilliseconds": 20, "minReplicas": 1}}),
    "service-monitor": {"metrics": {"serviceMonitor": {"enabled": True, "interval": "30s", "labels": {"release": "p"}}}},
    "prometheus-rule": {"metrics": {"prometheusRule": {"enabled": True, "labels": {"release": "p"}}}},
    "dashboard": {"metrics": {"dashboard": {"enabled": True}}},
    "no-spread": {"topologySpread": {"hosts": "", "zones": ""}},
    "strict-spread": {"topologySpread": {"hosts": "DoNotSchedule"}},
    "placed": {"nodeSelector": {"pool": "search"}, "priorityClassName": "high",
               "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                   {"matchExpressions": [{"key": "arch", "operator": "In", "values": ["amd64"]}]}]}}}},
    "own-account": {"serviceAccount": {"create": False, "name": "search"}},
    "account": {"serviceAccount": {"annotations": {"example.org/role": "reader"}}},
    # What YAML would take for numbers.
    "numbers": {"models": [joined(FETCHED, {"sha256": "1" * 64})], "apiKeys": {"existingSecret": "1"}, "priorityClassName": "1",
                "serviceAccount": {"name": "1"}, "tls": {"existingSecret": "2"}, "runtimeClassName": "3"},
    "extras": joined(CONTAINER_EXTRAS, {"podLabels": {"team": "search"}, "podAnnotations": {"example.org/a": "b"}}),
}

TOGETHER = {
    "keys-tls": joined(KEYS, TLS),
    "fetched-traces": {"models": [FETCHED], "config": {"traces_endpoint": "https://collector.example.org/v1/traces"}},
    "fetched-gpu": joined(GPU, {"models": [FETCHED]}),
    "fetched-keys-tls": joined(KEYS, TLS, {"models": [FETCHED], "heads": [FETCHED_HEAD]}),
    "volume-gpu": joined(ON_VOLUME, GPU),
    "scaled-gpu": joined(GPU, SCALED),
    "scaled-metrics": joined(SCALED, METRICS),
    "tls-metrics": joined(TLS, METRICS),
    "tls-ingress": joined(TLS, INGRESS),
    "named-fetched": {"models": [FETCHED], "fullnameOverride": "word-vectors"},
    "everything-on-volume": joined(ON_VOLUME, KEYS, TLS, GPU, SCALED, INGRESS, METRICS, CONTAINER_EXTRAS),
    "everything-fetched": joined(
        KEYS, TLS, GPU, SCALED, INGRESS, METRICS, CONTAINER_EXTRAS,
        {"models": [FETCHED], "heads": [FETCHED_HEAD], "fetch": {"curlConfigSecret": "curl"}},
    ),
}

MATRIX = ALONE | TOGETHER
