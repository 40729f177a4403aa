"""Metrics: the autoscaler's from a real service through a real Prometheus, and the custom resources of its operator, for
which kubernetes-validate has no schemas."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
import urllib.request

import pytest
import yaml

from chart import TOP, one, render
from matrix import METRICS, MATRIX
from test_pod import Pod, get

ADAPTER = yaml.safe_load((TOP / "deploy/helm/prometheus-adapter.yaml").read_text())


def tool(name):
    return shutil.which(name, path=f"{os.environ['PATH']}:{TOP}/.tools/prometheus/usr/bin")


needs_prometheus = pytest.mark.skipif(
    not (tool("prometheus") and tool("promtool")), reason="no prometheus and promtool (run scripts/install-prometheus)"
)


def query(metric, group="namespace,pod", matchers='namespace="n"'):
    """What the adapter asks Prometheus for this metric, by its own template."""
    [rule] = [rule for rule in ADAPTER["rules"]["custom"] if rule["name"]["as"] == metric]
    return rule["metricsQuery"].replace("<<.GroupBy>>", group).replace("<<.LabelMatchers>>", matchers)


def test_the_autoscaler_asks_for_the_metrics_of_the_adapter():
    values = {"autoscaling": {"enabled": True, "targetBusyPercent": 65, "targetQueueMilliseconds": 20}}
    metrics = one(render(values), "HorizontalPodAutoscaler")["spec"]["metrics"]
    asked = {metric["pods"]["metric"]["name"]: metric["pods"]["target"]["averageValue"] for metric in metrics}
    assert asked == {"kindred_busy_share": "650m", "kindred_queue_wait_seconds": "20m"}
    assert asked.keys() == {rule["name"]["as"] for rule in ADAPTER["rules"]["custom"]}
    assert [metric["type"] for metric in metrics] == ["Pods", "Pods"]
    only = one(render(MATRIX["scaled"]), "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert [metric["pods"]["metric"]["name"] for metric in only] == ["kindred_busy_share"]


@needs_prometheus
def test_the_metrics_have_the_right_values(tmp_path):
    """One pod with two models, of which the busier counts, and a pod whose engine has two replicas."""
    rules = {"groups": [{"name": "g", "rules": [
        {"record": metric, "expr": query(metric)} for metric in ("kindred_busy_share", "kindred_queue_wait_seconds")]}]}
    series = [
        # Seconds in passes of each minute: 30 in two lanes, and 6; in the other pod 90 on two GPUs.
        ('kindred_pass_seconds_sum{namespace="n", pod="a", model="m", lane="search"}', "0+20x20"),
        ('kindred_pass_seconds_sum{namespace="n", pod="a", model="m", lane="classify"}', "0+10x20"),
        ('kindred_pass_seconds_sum{namespace="n", pod="a", model="w", lane="search"}', "0+6x20"),
        ('kindred_pass_seconds_sum{namespace="n", pod="b", model="m", lane="search"}', "0+90x20"),
        ('kindred_pass_seconds_sum{namespace="other", pod="c", model="m", lane="search"}', "0+60x20"),
        *((f'kindred_replicas{{namespace="n", pod="{pod}", model="{model}", state="{state}"}}', f"{number}x20")
          for pod, model, state, number in (("a", "m", "working", 1), ("a", "w", "working", 1), ("a", "m", "lost", 0),
                                            ("b", "m", "working", 2), ("b", "m", "restarting", 1))),
        # 600 requests a minute that wait 12 s together; none.
        ('kindred_request_queue_seconds_sum{namespace="n", pod="a"}', "0+12x20"),
        ('kindred_request_queue_seconds_count{namespace="n", pod="a"}', "0+600x20"),
        ('kindred_request_queue_seconds_sum{namespace="n", pod="b"}', "5x20"),
        ('kindred_request_queue_seconds_count{namespace="n", pod="b"}', "9x20"),
    ]
    expected = {"kindred_busy_share": {"a": 0.5, "b": 0.75}, "kindred_queue_wait_seconds": {"a": 0.02, "b": 0}}
    tests = {
        "rule_files": ["rules.yml"],
        "tests": [{
            "interval": "1m",
            "input_series": [{"series": name, "values": values} for name, values in series],
            "promql_expr_test": [
                {"expr": metric, "eval_time": "10m", "exp_samples": [
                    {"labels": f'{metric}{{namespace="n", pod="{pod}"}}', "value": value} for pod, value in pods.items()]}
                for metric, pods in expected.items()],
        }],
    }
    (tmp_path / "rules.yml").write_text(yaml.safe_dump(rules))
    check = lambda: subprocess.run([tool("promtool"), "test", "rules", "test.yml"], cwd=tmp_path, capture_output=True, text=True)
    (tmp_path / "test.yml").write_text(yaml.safe_dump(tests))
    done = check()
    assert done.returncode == 0, done.stdout + done.stderr
    # Other values are found to be wrong.
    tests["tests"][0]["promql_expr_test"][0]["exp_samples"][0]["value"] = 0.6
    (tmp_path / "test.yml").write_text(yaml.safe_dump(tests))
    assert check().returncode != 0


@needs_prometheus
def test_a_real_service_has_the_metrics_under_load(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    with Pod({}, tmp_path / "pod").serving() as (address, _):
        config = {"scrape_configs": [{
            "job_name": "kindred", "scrape_interval": "1s", "scrape_timeout": "1s",
            "static_configs": [{"targets": [address.removeprefix("http://")], "labels": {"namespace": "n", "pod": "a"}}],
        }]}
        (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(config))
        arguments = [f"--config.file={tmp_path}/prometheus.yml", f"--storage.tsdb.path={tmp_path}/data",
                     f"--web.listen-address={listen}"]
        with (tmp_path / "log").open("w") as log:
            prometheus = subprocess.Popen([tool("prometheus"), *arguments], stdout=log, stderr=log)
        done = threading.Event()

        def load():
            while not done.is_set():
                get(address, "/nearest?word=frog&k=50")

        callers = [threading.Thread(target=load) for _ in range(2)]
        try:
            for caller in callers:
                caller.start()
            found = {metric: wait_for(listen, query(metric)) for metric in
                     ("kindred_busy_share", "kindred_queue_wait_seconds")}
        finally:
            done.set()
            prometheus.kill()
            prometheus.wait()
            for caller in callers:
                caller.join()
    for metric, sample in found.items():
        assert sample["metric"] == {"namespace": "n", "pod": "a"}, metric
        assert 0 < float(sample["value"][1]) < 1.5, (metric, sample)


def wait_for(address, expression):
    """The one sample of this expression, as soon as it is above zero."""
    deadline = time.monotonic() + 60
    url = f"http://{address}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
    while True:
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                samples = json.load(answer)["data"]["result"]
        except OSError:
            samples = []
        if samples and float(samples[0]["value"][1]) > 0:
            [sample] = samples
            return sample
        assert time.monotonic() < deadline, (expression, samples)
        time.sleep(0.2)


def test_rules_and_dashboard_are_those_of_docker():
    objects = render(METRICS)
    rules = yaml.safe_load((TOP / "docker/prometheus/rules.yml").read_text())
    assert one(objects, "PrometheusRule")["spec"] == rules
    board = one(objects, "ConfigMap", "-dashboard")["data"]["kindred.json"]
    assert json.loads(board) == json.loads((TOP / "docker/grafana/kindred.json").read_text())


def test_prometheus_scrapes_each_pod_once_under_the_names_that_the_rules_use():
    objects = render(METRICS)
    monitor = one(objects, "ServiceMonitor")["spec"]
    labels = monitor["selector"]["matchLabels"].items()
    matching = [o["metadata"]["name"] for o in objects if o["kind"] == "Service" and labels <= o["metadata"]["labels"].items()]
    assert matching == ["k-kindred-headless"]
    [endpoint] = monitor["endpoints"]
    assert endpoint["port"] == "http" and endpoint["path"] == "/metrics" and "scheme" not in endpoint
    jobs = set(re.findall(r'job="([^"]*)"', (TOP / "docker/prometheus/rules.yml").read_text()))
    relabelled = {one["targetLabel"]: one for one in endpoint["relabelings"]}
    assert jobs == {relabelled["job"]["replacement"]} and "instance" in relabelled
    assert one(render(MATRIX["tls-metrics"]), "ServiceMonitor")["spec"]["endpoints"][0]["scheme"] == "https"
