"""What a pod would run, really run: its init containers in their order and then the service, with the folders of the volumes
in a temporary one. Only the images and Kubernetes itself are missing."""

import contextlib
import gzip
import hashlib
import http.server
import os
import re
import shutil
import signal
import subprocess
import tarfile
import threading
import time
import tomllib
import urllib.error
import urllib.request

import pytest

from chart import CHART, TOP, containers, one, render, settings_file
from matrix import FETCHED, KEYS, joined

KINDRED = os.environ.get("TEST_KINDRED", str(TOP / "target/debug/kindred"))
VECTORS = "east 1 0\nnorth 0 1\nnortheast 1 1\nwest -1 0\nsouth 0 -1\n"


def environment(**more):
    ours = {name: value for name, value in os.environ.items() if not name.startswith("KINDRED_")}
    return ours | more


class Pod:
    """The volumes of a pod of these values, and its containers as processes."""

    def __init__(self, values, root, claim=None):
        self.objects = render(values)
        self.spec = one(self.objects, "Deployment")["spec"]["template"]["spec"]
        self.root = root
        for folder in ("download", "cache", "etc/kindred/config", "etc/kindred/keys"):
            (root / folder).mkdir(parents=True)
        self.models = claim or root / "models"
        self.models.mkdir(exist_ok=True)
        files = {n: t for o in self.objects if o["kind"] == "ConfigMap" for n, t in o["data"].items()}
        for name, text in files.items():
            (root / "etc/kindred/config" / name).write_text(self.moved(text))

    def moved(self, text):
        """The same with the paths of the volumes where they are here."""
        text = re.sub(r"(?<![\w/:.])/models", str(self.models), text)
        return re.sub(r"(?<![\w/:.])/(download|cache|etc/kindred)\b", rf"{self.root}/\1", text)

    def command(self, container):
        program = container.get("command", []) + container.get("args", [])
        program = [self.moved(word) for word in program]
        return program if "command" in container else [KINDRED, *program]

    def initialise(self):
        """Runs the init containers; returns what they said, or raises at the first that fails."""
        said = []
        for container in self.spec.get("initContainers", []):
            done = subprocess.run(
                self.command(container), capture_output=True, text=True, timeout=120,
                env=environment(HOSTNAME=f"pod-{self.root.name}", RETRIES="0"),
            )
            said.append(done.stdout + done.stderr)
            if done.returncode != 0:
                raise RuntimeError(f"{container['name']}: {said[-1]}")
        return said

    @contextlib.contextmanager
    def serving(self, **variables):
        """The service, on a free port instead of 8080: its address and its process."""
        command = self.command(self.spec["containers"][0])
        assert command[-2] == "--listen"
        command[-1] = "127.0.0.1:0"
        log = self.root / "log"
        with log.open("w") as output:
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=output, text=True, env=environment(**variables)
            )
        try:
            while not (lines := [line for line in log.read_text().splitlines() if "listening" in line]):
                if process.poll() is not None:
                    raise RuntimeError(log.read_text())
                time.sleep(0.02)
            # In either format of the log.
            address = re.search(r'address"?[:=]"?([0-9.]+:[0-9]+)', lines[0])[1]
            scheme = re.search(r'scheme"?[:=]"(https?)"', lines[0])[1]
            yield f"{scheme}://{address}", process
        finally:
            process.kill()
            process.wait()


def get(address, path, key=None):
    request = urllib.request.Request(address + path, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.fixture
def files(tmp_path):
    """A server of files on loopback: its folder, its address, and the requests that it got."""
    folder, requests = tmp_path / "www", []
    folder.mkdir()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=str(folder))

        def log_message(self, *_):
            requests.append((self.path, self.headers.get("Authorization")))

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}", requests
    server.shutdown()


def published(files, name="v.txt.gz", content=None):
    """Puts a file on the server; its URL and SHA-256."""
    folder, address, _ = files
    content = content if content is not None else gzip.compress(VECTORS.encode())
    (folder / name).write_bytes(content)
    return {"url": f"{address}/{name}", "sha256": hashlib.sha256(content).hexdigest()}


def test_the_default_pod_serves_the_built_in_model_and_drains(tmp_path):
    # The drain in hundredths, and threads as the downward interface would give them.
    variables = {"KINDRED_DRAIN_DELAY_MS": "300", "KINDRED_THREADS": "1"}
    pod = Pod({}, tmp_path)
    probes = [pod.spec["containers"][0][f"{kind}Probe"]["httpGet"]["path"] for kind in ("startup", "readiness", "liveness")]
    with pod.serving(**variables) as (address, process):
        assert all(get(address, path)[0] == 200 for path in probes)
        assert "frogs" in get(address, "/nearest?word=frog&k=1")[1]
        process.send_signal(signal.SIGTERM)
        begun = time.monotonic()
        while get(address, "/health/ready")[0] != 503:
            assert time.monotonic() - begun < 0.3
        assert process.wait(60) == 0


# Models come from elsewhere, and do not change.
OF_NO_POD = ("model", "head", "models_dir", "fold_changed_ratio", "fold_age_s", "open_writes")


def test_every_setting_starts_a_service(tmp_path):
    """All settings written out with their defaults: the service takes the file, so the chart knows no others and no other
    types."""
    settings = tomllib.loads((TOP / "config/kindred.toml").read_text())
    known = tomllib.loads(settings_file(render()))
    config = {key: value for key, value in settings.items() if key not in known and key not in OF_NO_POD
              and key not in ("api_keys_file", "tls_certificate", "tls_private_key")}
    assert len(config) > 20
    with Pod({"config": config}, tmp_path).serving() as (address, _):
        assert get(address, "/health/ready")[0] == 200


def test_a_setting_that_the_service_does_not_have_is_refused_by_it(tmp_path):
    pod = Pod({}, tmp_path)
    with (tmp_path / "etc/kindred/config/kindred.toml").open("a") as file:
        file.write("thread = 1\n")
    with pytest.raises(RuntimeError, match="`thread`"), pod.serving():
        pass


def test_a_model_is_fetched_checked_prepared_once_and_served(tmp_path, files):
    values = {"models": [{"name": "compass", **published(files), "prepareArgs": ["--dim", "2"]}]}
    pod = Pod(values, tmp_path / "a")
    assert [c["name"] for c in pod.spec["initContainers"]] == ["fetch-model-0", "prepare-model-0", "remove-downloads"]
    pod.initialise()
    assert list((pod.root / "download").iterdir()) == [], "the download is removed"
    with pod.serving() as (address, _):
        assert '"model":"compass"' in get(address, "/nearest?word=east&k=1")[1]
    # The pod starts again (its node did), or another one on the same claim: nothing is fetched or prepared.
    requests = len(files[2])
    for again in (pod, Pod(values, tmp_path / "b", claim=pod.models)):
        said = again.initialise()
        assert "nothing to fetch" in said[0] and "kept: 5 rows" in said[1]
    assert len(files[2]) == requests == 1
    # Another file gets a folder of its own, and the old one stays for the pods that serve it.
    other = {"models": [{"name": "compass", **published(files, "w.txt", (VECTORS + "up 1 2\n").encode())}]}
    Pod(other, tmp_path / "c", claim=pod.models).initialise()
    assert len(list(pod.models.glob("compass-*/vectors.safetensors"))) == 2


def test_a_file_with_another_checksum_is_refused_with_both(tmp_path, files):
    source = published(files)
    right = source["sha256"]
    pod = Pod({"models": [{"name": "en", "url": source["url"], "sha256": "0" * 64}]}, tmp_path / "pod")
    with pytest.raises(RuntimeError, match=f"fetch-model-0: .*{right}, not {'0' * 64}"):
        pod.initialise()
    assert list((pod.root / "download").iterdir()) == [] and list(pod.models.iterdir()) == []


def test_a_fetch_or_a_preparation_that_ends_early_is_made_up_for(tmp_path, files):
    source = published(files)
    pod = Pod({"models": [{"name": "en", **source}]}, tmp_path / "pod")
    download = pod.root / "download/models-en"
    # The file is not there (yet).
    (files[0] / "v.txt.gz").rename(files[0] / "away")
    with pytest.raises(RuntimeError, match="404"):
        pod.initialise()
    (files[0] / "away").rename(files[0] / "v.txt.gz")
    # A container was killed during the download, and another one while it prepared.
    download.with_name("models-en.part").write_bytes(b"half")
    (pod.models / ".kindred-prepare-left").mkdir()
    pod.initialise()
    assert len(list(pod.models.glob("en-*/words.txt"))) == 1
    # A download that was complete is not fetched again.
    shutil.rmtree(next(pod.models.glob("en-*")))
    download.write_bytes((files[0] / "v.txt.gz").read_bytes())
    requests = len(files[2])
    pod.initialise()
    assert len(files[2]) == requests


def test_a_private_file_is_fetched_with_a_configuration_of_curl(tmp_path, files):
    config = tmp_path / "curlrc"
    config.write_text('header = "Authorization: Bearer secret"\n')
    values = {"models": [{"name": "en", **published(files)}], "fetch": {"curlConfigSecret": "curl"}}
    fetch = one(render(values), "Deployment")["spec"]["template"]["spec"]["initContainers"][0]
    assert fetch["env"] == [{"name": "CURL_CONFIG", "value": "/etc/kindred/curl/curlrc"}]
    source = values["models"][0]
    command = ["sh", CHART / "files/fetch.sh", source["url"], source["sha256"], tmp_path / "file", tmp_path / "folder"]
    subprocess.run(command, check=True, env=environment(CURL_CONFIG=str(config)))
    assert files[2] == [("/v.txt.gz", "Bearer secret")]


def test_a_head_is_fetched_and_served_with_its_model(tmp_path, files):
    source = published(files)
    # Trained on the same model, as its user would.
    text, model, head = tmp_path / "v.txt", tmp_path / "model", tmp_path / "head"
    text.write_text(VECTORS)
    labels = tmp_path / "texts.tsv"
    labels.write_text("right\teast northeast\nleft\twest south\n" * 20)
    kindred = lambda *words: subprocess.run([KINDRED, *map(str, words)], check=True, capture_output=True, env=environment())
    kindred("prepare", text, "--out", model)
    kindred("train", "classifier", "--model", model, "--out", head, "--data", labels)
    with tarfile.open(files[0] / "mood.tar.gz", "w:gz") as packed:
        packed.add(head, ".")
    of_head = published(files, "mood.tar.gz", (files[0] / "mood.tar.gz").read_bytes())
    values = {"models": [{"name": "en", **source}], "heads": [{"name": "mood", **of_head}]}
    pod = Pod(values, tmp_path / "pod")
    pod.initialise()
    with pod.serving() as (address, _):
        assert '"mood"' in get(address, "/heads")[1]
    # Another pod on the same claim was faster.
    pod.initialise()
    [folder] = pod.models.glob("head-mood-*")
    assert sorted(f.name for f in folder.iterdir()) == sorted(f.name for f in head.iterdir())


def test_keys_of_the_secret_are_asked_for_and_probes_need_none(tmp_path):
    line = subprocess.run([KINDRED, "api-key", "a"], capture_output=True, text=True, check=True, env=environment())
    key, line = line.stdout.splitlines()[1], line.stdout.splitlines()[-1]
    pod = Pod(joined(KEYS, {"config": {"log_format": "text"}}), tmp_path)
    (tmp_path / "etc/kindred/keys/keys").write_text(line + "\n")
    with pod.serving() as (address, _):
        assert [get(address, path)[0] for path in ("/health/ready", "/metrics", "/model")] == [200, 200, 401]
        assert get(address, "/model", key)[0] == 200


def test_the_test_of_the_release_asks_the_service(tmp_path):
    container = one(render(), "Pod", "-test")["spec"]["containers"][0]
    pod = Pod({}, tmp_path)
    command = [KINDRED, *container["args"]]
    assert command[-1] == "http://k-kindred:8080"
    with pod.serving() as (address, _):
        assert subprocess.run([*command[:-1], address], env=environment()).returncode == 0
    assert subprocess.run([*command[:-1], address], env=environment(), capture_output=True).returncode == 1


def test_the_fetch_image_needs_a_shell_and_the_tools_that_the_values_name(tmp_path, files):
    tools = tmp_path / "bin"
    tools.mkdir()
    # gzip is part of tar in small images.
    for tool in ("curl", "sha256sum", "tar", "cut", "mkdir", "mv", "rm", "gzip"):
        (tools / tool).symlink_to(shutil.which(tool))
    with tarfile.open(files[0] / "head.tar.gz", "w:gz") as packed:
        packed.add(TOP / "LICENSE", "LICENSE")
    source = published(files, "head.tar.gz", (files[0] / "head.tar.gz").read_bytes())
    folder = tmp_path / "folder"
    shell = shutil.which("dash") or shutil.which("sh")
    command = [shell, CHART / "files/fetch.sh", source["url"], source["sha256"], tmp_path / "file", folder, "unpack"]
    subprocess.run(command, check=True, env={"PATH": str(tools), "HOSTNAME": "pod-1"})
    assert [file.name for file in folder.iterdir()] == ["LICENSE"] and not list(tmp_path.glob("folder.*"))


def test_the_image_of_the_service_is_asked_for_no_shell():
    spec = one(render({"models": [FETCHED]}), "Deployment")["spec"]["template"]["spec"]
    for container in containers(spec):
        assert container["image"].startswith("kindred:") != ("command" in container), container["name"]
