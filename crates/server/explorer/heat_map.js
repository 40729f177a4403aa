/** The similarity matrix, as a grid of colours. */

import { byId, draw, make, number } from "./dom.js";
import { stretched } from "./similarities.js";

const MOST_GUTTER = 96;
/** The size of names, in pixels; below the smallest they can't be read. */
const LARGEST = 12;
const SMALLEST = 11;
/** A row is at least so high, and at most so high, in pixels: so each has its name. */
const ROW = 14;
const MOST_ROW = 34;

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
  const left = Math.min(MOST_GUTTER, width * 0.25, 7 * Math.max(...names.map((name) => name.length)) + 8);
  const cell = { width: Math.min((width - left) / size, MOST_ROW), height: 0 };
  cell.height = Math.max(cell.width, ROW);
  // Columns are in the order of the rows, so their names may be left out where they would be too small.
  const isNamed = cell.width >= SMALLEST;
  const top = isNamed ? left : 2;
  const others = matrix.flatMap((row, i) => row.filter((_, j) => i !== j));
  const [least, most] = others.length ? [Math.min(...others), Math.max(...others)] : [0, 1];
  const share = stretched(others);
  const cells = matrix.flatMap((row, i) =>
    row.map((value, j) =>
      draw("rect", {
        x: left + j * cell.width,
        y: top + i * cell.height,
        ...cell,
        class: i === j ? "cell self" : "cell",
        "--share": share(value),
      }),
    ),
  );
  const label = (name, index, isRow) => {
    const along = isRow ? top + (index + 0.5) * cell.height : left + (index + 0.5) * cell.width;
    const letters = Math.min(LARGEST, Math.max(0.85 * (isRow ? cell.height : cell.width), SMALLEST));
    return draw(
      "text",
      {
        class: "name",
        "data-word": name,
        transform: isRow ? `translate(${left - 4} ${along})` : `translate(${along} ${top - 4}) rotate(-90)`,
        "text-anchor": isRow ? "end" : "start",
        "font-size": letters,
      },
      short(name, left, letters),
    );
  };
  const labels = (isNamed ? [true, false] : [true]).map((isRow) => names.map((name, at) => label(name, at, isRow)));
  const cursor = draw("rect", { class: "cursor", ...cell });
  const drawn = { width: left + size * cell.width, height: top + size * cell.height };
  const chart = draw(
    "svg",
    {
      class: "heat",
      role: "img",
      tabindex: 0,
      "aria-label": `Pairwise similarities of ${size} words, from ${number(least)} to ${number(most)}. Use the arrow keys to move from pair to pair.`,
      viewBox: `0 0 ${drawn.width} ${drawn.height}`,
      ...drawn,
      onpointermove: (event) => {
        const edge = chart.getBoundingClientRect();
        look(Math.floor((event.clientY - edge.top - top) / cell.height), Math.floor((event.clientX - edge.left - left) / cell.width));
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
  Object.assign(current, { cursor, cell, left, top, width });
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
  const { names, matrix, cursor, cell, left, top } = current;
  if (row < 0 || column < 0 || row >= names.length || column >= names.length) return;
  Object.assign(current, { row, column });
  cursor.setAttribute("x", left + column * cell.width);
  cursor.setAttribute("y", top + row * cell.height);
  byId("pair").textContent = `${names[row]} · ${names[column]}: ${number(matrix[row][column], 4)}`;
}

/** A name, shortened to fit. */
function short(name, room, size) {
  const letters = Math.floor((room - 6) / (size * 0.64));
  const all = [...name];
  return all.length > letters ? `${all.slice(0, letters - 1).join("")}…` : name;
}
