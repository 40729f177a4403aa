/** The similarity matrix, as a grid of colours. */

import { byId, draw, make, number } from "./dom.js";
import { stretched } from "./similarities.js";

const MOST_GUTTER = 96;
/** Below this many pixels a cell's name can't be read. */
const READABLE = 9;

let current = null;

/** Draws it: `names` of all points and the `matrix` of their similarities. */
export function drawHeatMap({ names, matrix }) {
  current = { names, matrix, row: 0, column: Math.min(1, names.length - 1) };
  fit();
}

/** Fits the available space, if it has changed. */
export function fit() {
  if (!current) return;
  const { names, matrix } = current;
  const width = byId("heat").clientWidth;
  if (width === 0 || width === current.width) return;
  const hadFocus = byId("heat").contains(document.activeElement);
  const size = names.length;
  const wanted = Math.min(MOST_GUTTER, width * 0.22, 7 * Math.max(...names.map((name) => name.length)) + 8);
  const isNamed = (width - wanted) / size >= READABLE;
  const gutter = isNamed ? wanted : 2;
  const cell = Math.min((width - gutter) / size, 34);
  const others = matrix.flatMap((row, i) => row.filter((_, j) => i !== j));
  const [least, most] = others.length ? [Math.min(...others), Math.max(...others)] : [0, 1];
  const share = stretched(others);
  const cells = matrix.flatMap((row, i) =>
    row.map((value, j) =>
      draw("rect", {
        x: gutter + j * cell,
        y: gutter + i * cell,
        width: cell,
        height: cell,
        class: i === j ? "cell self" : "cell",
        "--share": share(value),
      }),
    ),
  );
  const label = (name, index, isRow) => {
    const along = gutter + (index + 0.5) * cell;
    return draw(
      "text",
      {
        class: "name",
        "data-word": name,
        transform: isRow ? `translate(${gutter - 4} ${along})` : `translate(${along} ${gutter - 4}) rotate(-90)`,
        "text-anchor": isRow ? "end" : "start",
        "font-size": Math.min(cell * 0.85, 12),
      },
      short(name, gutter, Math.min(cell * 0.85, 12)),
    );
  };
  const labels = isNamed ? [true, false].map((isRow) => names.map((name, at) => label(name, at, isRow))) : [];
  const cursor = draw("rect", { class: "cursor", width: cell, height: cell });
  const side = gutter + size * cell;
  const chart = draw(
    "svg",
    {
      class: "heat",
      role: "img",
      tabindex: 0,
      "aria-label": `Pairwise similarities of ${size} words, from ${number(least)} to ${number(most)}. Use the arrow keys to move from pair to pair.`,
      viewBox: `0 0 ${side} ${side}`,
      width: side,
      height: side,
      onpointermove: (event) => {
        const at = (client, edge) => Math.floor((client - edge - gutter) / cell);
        const { left, top } = chart.getBoundingClientRect();
        look(at(event.clientY, top), at(event.clientX, left));
      },
      onkeydown: (event) => {
        const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [];
        if (down === undefined) return;
        event.preventDefault();
        look(current.row + down, current.column + right);
      },
    },
    cells,
    labels,
    cursor,
  );
  Object.assign(current, { cursor, cell, gutter, width });
  byId("heat").replaceChildren(chart, readout(least, most));
  if (hadFocus) chart.focus({ preventScroll: true });
  look(current.row, current.column);
}

/** The colour scale, and the selected pair. */
function readout(least, most) {
  const scale = make("span", { class: "gradient", "aria-hidden": "true" });
  const [from, to] = [least, most].map((value) => make("small", {}, number(value, 2)));
  return make("div", { class: "scale" }, from, scale, to, make("output", { id: "pair" }));
}

function look(row, column) {
  const { names, matrix, cursor, cell, gutter } = current;
  if (row < 0 || column < 0 || row >= names.length || column >= names.length) return;
  Object.assign(current, { row, column });
  cursor.setAttribute("x", gutter + column * cell);
  cursor.setAttribute("y", gutter + row * cell);
  byId("pair").textContent = `${names[row]} · ${names[column]}: ${number(matrix[row][column], 4)}`;
}

/** A name, shortened to fit. */
function short(name, room, size) {
  const letters = Math.floor((room - 6) / (size * 0.64));
  const all = [...name];
  return all.length > letters ? `${all.slice(0, letters - 1).join("")}…` : name;
}
