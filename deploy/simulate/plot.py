#!/usr/bin/env python3
"""Draws the plots of docs/simulation.md from what `simulate figures` printed:

    cargo run --release --manifest-path deploy/simulate/Cargo.toml -- figures > figures.csv
    deploy/simulate/plot.py figures.csv docs/images"""
import csv
import math
import sys

RULES = ["connection", "random", "round-robin", "two-choices", "least"]
COLOURS = ["#b5507a", "#c98a1b", "#6a9a3a", "#2a78c2", "#7a5fc0"]
WIDTH, HEIGHT, LEFT, TOP = 230, 180, 52, 46
STEP = LEFT + WIDTH + 16


def blocks(path):
    """The tables of the file: each begins with its own names of columns."""
    found, names = {}, []
    with open(path, encoding="utf-8") as file:
        for row in csv.reader(file):
            if row[0] == "figure":
                names = row
            else:
                found.setdefault(row[0], []).append(dict(zip(names, row)))
    return found


def panel(at, title, ends, ticks, series, scale):
    """`series` has for each rule its points; `ticks` and `ends` are for x and y; `scale` says which axes are logarithmic."""
    def place(value, axis):
        low, high = (math.log(end) if scale[axis] else end for end in ends[axis])
        part = ((math.log(value) if scale[axis] else value) - low) / (high - low)
        return at + LEFT + part * WIDTH if axis == 0 else TOP + (1 - part) * HEIGHT

    lines = [f'<text x="{at + LEFT + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 34}" class="title">{title}</text>']
    for tick in ticks[0]:
        x = place(tick, 0)
        lines.append(f'<path d="M{x:.1f} {TOP}V{TOP + HEIGHT}"/><text x="{x:.1f}" y="{TOP + HEIGHT + 15}" class="x">{tick:,g}</text>')
    for tick in ticks[1]:
        y = place(tick, 1)
        lines.append(f'<path d="M{at + LEFT} {y:.1f}h{WIDTH}"/><text x="{at + LEFT - 5}" y="{y + 4:.1f}" class="y">{tick:,g}</text>')
    for rule, points in series.items():
        colour = COLOURS[RULES.index(rule)]
        places = [(place(x, 0), place(min(max(y, ends[1][0]), ends[1][1]), 1)) for x, y in points]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        lines.append(f'<polyline points="{line}" stroke="{colour}"/>')
        if len(places) < 10:
            lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    return lines


def write(path, title, panels):
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {STEP * len(panels)} {TOP + HEIGHT + 44}" font-family="sans-serif" font-size="11">',
        "<style>path{stroke:#8884;fill:none}polyline{stroke-width:2;fill:none}text{fill:#777}"
        ".title,.x{text-anchor:middle}.y{text-anchor:end}</style>",
        f'<text x="4" y="14">{title}</text>',
    ]
    for number, (rule, colour) in enumerate(zip(RULES, COLOURS)):
        x = 4 + number * 100
        lines.append(f'<circle cx="{x + 4}" cy="28" r="4" fill="{colour}"/><text x="{x + 12}" y="32">{rule}</text>')
    for number, one in enumerate(panels):
        lines += panel(number * STEP, *one)
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([*lines, "</svg>"]) + "\n")


def by_rule(rows, x, y):
    found = {}
    for row in rows:
        found.setdefault(row["rule"], []).append((float(row[x]), float(row[y])))
    return found


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: deploy/simulate/plot.py FIGURES.CSV FOLDER")
    data, folder = blocks(sys.argv[1]), sys.argv[2]
    sizes = (8, 1250), [10, 100, 1000]
    latency = [row for row in data["latency"] if row["engine"] == "cpu16"]
    panels = [
        (f"replicas: {name}", (sizes[0], (4, 600)), (sizes[1], [5, 10, 50, 100, 500]), by_rule(latency, "replicas", column), (True, True))
        for name, column in [("p50", "p50_ms"), ("p99", "p99_ms"), ("p99.9", "p999_ms")]
    ]
    write(f"{folder}/simulation-latency.svg", "milliseconds at 70 % of the peak, 16 cores a replica", panels)
    panels = []
    for engine, what in [("h200", "one H200 each, p99 up to 1 ms"), ("cpu16", "16 cores each, p99 up to 15 ms")]:
        rows = [row for row in data["headroom"] if row["engine"] == engine]
        ends, ticks = (sizes[0], (0, 1)), (sizes[1], [0, 0.25, 0.5, 0.75, 1])
        panels.append((f"replicas: {what}", ends, ticks, by_rule(rows, "replicas", "load"), (True, False)))
    write(f"{folder}/simulation-headroom.svg", "highest load, as a share of the peak", panels)
    panels = []
    for what, title in [("dies", "one of ten dies"), ("freezes", "one of ten freezes"), ("slow", "one of ten is 5 × as slow")]:
        series = {}
        for row in data["failures"]:
            if row["what"] == what and row["replicas"] == "10":
                values = [float(value) for value in row["timeline_p99_ms"].split(" ")]
                series[row["rule"]] = [((number + 0.5) / 4, value) for number, value in enumerate(values)]
        ends, ticks = ((0, 20), (5, 3000)), ([0, 5, 10, 15, 20], [10, 100, 1000])
        panels.append((f"seconds: {title}", ends, ticks, series, (False, True)))
    write(f"{folder}/simulation-failures.svg", "p99 of each quarter of a second, ms, at 60 % of the peak; the failure lasts from 5 to 15 s", panels)


main()
