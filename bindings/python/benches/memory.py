"""The memory of processes that open one model and search it: what all take together, against what one takes.

    python benches/memory.py MODEL [PROCESSES]

Memory that processes share counts once (the proportional set size of Linux). All start at the same moment; first without the saved table
of the CPU engine, which one of them derives, and then with it.
"""

import os
import platform
import subprocess
import sys
from collections import Counter
from pathlib import Path

CHILD = """
import sys, time
import kindred

model = kindred.open(sys.argv[1], device="cpu")
until = time.monotonic() + 10  # The first answers are from full scans, until the derived table is there.
while time.monotonic() < until:
    model.nearest_rows(range(64))
model.vectors.sum()  # Every page is touched.
print("ready", flush=True)
sys.stdin.read()
"""


def memory(process: int) -> Counter[str]:
    """Megabytes of a process: all, and the part that no other process can share."""
    lines = (line.split() for line in Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()[1:])
    return Counter({name.rstrip(":"): int(kilobytes) / 1000 for name, kilobytes, _ in lines if name in ("Pss:", "Pss_Anon:")})


def together(model: str, count: int) -> Counter[str]:
    """What this many processes take."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen([sys.executable, "-c", CHILD, model], text=True, **pipes) for _ in range(count)]
    try:
        assert all(process.stdout.readline() == "ready\n" for process in processes)
        return sum((memory(process.pid) for process in processes), Counter())
    finally:
        for process in processes:
            process.stdin.close()
            process.wait()


def main(model: str, count: int = 8) -> None:
    table = Path(f"{os.path.abspath(model)}.{platform.machine()}.cpu-table")
    for what in ("without a saved table", "with a saved table"):
        totals = []
        for processes in (1, count):
            if what.startswith("without"):
                table.unlink(missing_ok=True)
            totals.append(together(model, processes))
        one, all_of_them = totals
        print(
            f"{what}: 1 process {one['Pss']:.0f} MB, {count} processes {all_of_them['Pss']:.0f} MB, "
            f"{all_of_them['Pss'] / one['Pss']:.2f} times; not shared {all_of_them['Pss_Anon'] / count:.0f} MB each",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1], *map(int, sys.argv[2:3]))
