"""How long `kindred prepare` takes for a large GloVe text, beside what has to be done with such a file at the
least: counting its lines and its checksum (wc, md5sum), one C loop of strtof, and gensim. All in one run;
ratios are what counts. benches/prepare/compare runs it."""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent


def timed(command, **options):
    """Seconds, peak resident memory in bytes (as GNU time -v prints it), output."""
    started = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.monotonic() - started
    if status != 0:
        sys.exit(f"{command}: failed")
    return seconds, usage.ru_maxrss * 1024, output


def start_of_serve(kindred, model):
    """Seconds from the start of the program to its first 200 from /health/ready."""
    started = time.monotonic()
    child = subprocess.Popen(
        [kindred, "serve", "--model", model, "--device", "cpu", "--listen", "127.0.0.1:0", "--keep-tables",
         "false", "--log-level", "error"], stdout=subprocess.PIPE, text=True)
    try:
        for line in child.stdout:
            if "http://" in line:
                address = line.split("http://")[1].strip()
                break
        while True:
            try:
                urllib.request.urlopen(f"http://{address}/health/ready").read()
                return time.monotonic() - started
            except urllib.error.HTTPError:
                pass
    finally:
        child.kill()
        child.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", help="GloVe text; made by `kindred synth --text` if it is not there")
    parser.add_argument("--rows", type=int, default=2196016)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kindred", required=True, help="the program")
    parser.add_argument("--without-gensim", action="store_true")
    arguments = parser.parse_args()
    kindred, text = arguments.kindred, arguments.text
    if not os.path.exists(text):
        subprocess.run([kindred, "synth", "--rows", str(arguments.rows), "--dim", str(arguments.dim), "--text", text],
                       check=True)
    size = os.path.getsize(text)
    table = arguments.rows * arguments.dim * 4
    scratch = pathlib.Path(tempfile.mkdtemp(dir=os.path.dirname(os.path.abspath(text))))
    strtof = scratch / "strtof"
    subprocess.run(["cc", "-O2", "-o", strtof, HERE / "strtof.c"], check=True)
    model = scratch / "model"
    results = {"wc -l, md5sum": [], "strtof": [], "kindred prepare": []}
    peak = 0
    for round_ in range(arguments.rounds):
        with open(os.devnull, "w") as nowhere:
            counted = timed(["wc", "-l", text])[0] + timed(["md5sum", text])[0]
            results["wc -l, md5sum"].append(counted)
            results["strtof"].append(timed([strtof, text])[0])
            shutil.rmtree(model, ignore_errors=True)
            os.sync()
            seconds, memory, _ = timed([kindred, "prepare", text, "--out", model], stderr=nowhere)
            results["kindred prepare"].append(seconds)
            peak = max(peak, memory)
        print(f"round {round_ + 1}: " + ", ".join(f"{what} {times[-1]:.1f} s" for what, times in results.items()),
              flush=True)
    ready = statistics.median(start_of_serve(kindred, model) for _ in range(5))
    if not arguments.without_gensim:
        code = ("import sys; from gensim.models import KeyedVectors; "
                "KeyedVectors.load_word2vec_format(sys.argv[1], binary=False, no_header=True)")
        results["gensim load_word2vec_format"] = [timed([sys.executable, "-c", code, text])[0]]
    shutil.rmtree(scratch)
    middle = {what: statistics.median(times) for what, times in results.items()}
    ours = middle["kindred prepare"]
    print(f"\n{text}: {size / 1e9:.2f} GB, {arguments.rows:,} rows × {arguments.dim}, "
          f"{os.cpu_count()} cores, medians of {arguments.rounds}\n")
    print("| | seconds | MB/s | kindred prepare is |")
    print("|---|---|---|---|")
    for what, seconds in middle.items():
        beside = "" if what == "kindred prepare" else f"{ours / seconds:.2f} × its time"
        if "gensim" in what:
            beside = f"{seconds / ours:.0f} × as fast"
        print(f"| {what} | {seconds:.1f} | {size / 1e6 / seconds:.0f} | {beside} |")
    print(f"\npeak memory {peak / 1e9:.2f} GB, {peak / table:.2f} of the float32 table ({table / 1e9:.2f} GB)")
    print(f"serve: {ready:.2f} s from start to ready")


main()
