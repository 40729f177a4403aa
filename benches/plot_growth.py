#!/usr/bin/env python3
"""Draws how forward passes of expanders grow, from the output of `cargo bench -p gpu-core --features cuda --bench expand -- --growth`:

    benches/plot_growth.py growth.csv docs/images/expand-growth.svg"""
import csv
import math
import sys

PANELS = {"terms": ("terms", "terms"), "touched": ("terms that a text touches", "touched"), "tokens": ("tokens of a text", "tokens")}
WIDTH, HEIGHT, LEFT, TOP = 250, 190, 52, 26


def ticks(low, high):
    """Powers of ten within, and their halves and doubles where there is only one."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    some = [10.0**power * step for power in powers for step in (1, 2, 5)]
    within = [tick for tick in some if low <= tick <= high]
    return within if len(within) < 6 else [tick for tick in within if f"{tick:e}"[0] == "1"]


def panel(at, title, points):
    xs, ys = [x for x, _ in points], [y for _, y in points]
    ends = [(min(values) / 1.15, max(values) * 1.15) for values in (xs, ys)]

    def place(value, axis):
        low, high = ends[axis]
        part = math.log(value / low) / math.log(high / low)
        return at + LEFT + part * WIDTH if axis == 0 else TOP + (1 - part) * HEIGHT

    lines = [f'<text x="{at + LEFT + WIDTH / 2:.0f}" y="{TOP + HEIGHT + 34}" class="title">{title}</text>']
    for tick in ticks(*ends[0]):
        x = place(tick, 0)
        lines.append(f'<path d="M{x:.1f} {TOP}V{TOP + HEIGHT}"/><text x="{x:.1f}" y="{TOP + HEIGHT + 15}" class="x">{tick:,.0f}</text>')
    for tick in ticks(*ends[1]):
        y = place(tick, 1)
        lines.append(f'<path d="M{at + LEFT} {y:.1f}h{WIDTH}"/><text x="{at + LEFT - 5}" y="{y + 4:.1f}" class="y">{tick:g}</text>')
    places = [(place(x, 0), place(y, 1)) for x, y in points]
    lines.append('<polyline points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in places) + '"/>')
    lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places]
    return lines


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if "," in line))
    total = (LEFT + WIDTH + 16) * len(PANELS)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {TOP + HEIGHT + 44}" font-family="sans-serif" font-size="11">',
        "<style>path{stroke:#8884;fill:none}polyline{stroke:#2a78c2;stroke-width:2;fill:none}circle{fill:#2a78c2}text{fill:#777}"
        ".title,.x{text-anchor:middle}.y{text-anchor:end}</style>",
        '<text x="4" y="14">milliseconds of a forward pass</text>',
    ]
    for number, (what, (title, column)) in enumerate(PANELS.items()):
        points = [(float(row[column]), float(row["forward_ms"])) for row in rows if row["what"] == what]
        lines += panel(number * (LEFT + WIDTH + 16), title, sorted(points))
    lines.append("</svg>")
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()
