"""What a call from Python adds to the engine's own time: `python benches/overhead.py [MODEL]`."""

from __future__ import annotations

import statistics
import sys
import time

import kindred


def median_us(call, times: int) -> float:
    """The median time of a call, in microseconds."""
    took = []
    for _ in range(times):
        started = time.perf_counter_ns()
        call()
        took.append((time.perf_counter_ns() - started) / 1e3)
    return statistics.median(took)


def main() -> None:
    model = kindred.open(sys.argv[1]) if len(sys.argv) > 1 else kindred.demo()
    word = "frog" if "frog" in model else model.words[1000]
    for _ in range(200):
        model.nearest(word)
    for _ in range(5):
        inside = model._model.engine_microseconds(word, 300)
        call = median_us(lambda: model.nearest(word), 300)
        print(f"{model.name} on {model.device}: the call {call:.1f} us, the engine {inside:.1f} us, overhead {call - inside:.1f} us")


if __name__ == "__main__":
    main()
