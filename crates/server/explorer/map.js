/** A map of words: similar words are close together. It can be zoomed, dragged, and used with the keyboard. */

import { ofWord } from "./address.js";
import { byId, draw, make, number, within } from "./dom.js";
import { place as placeLabels } from "./labels.js";
import { plane, spanningTree } from "./principal_components.js";
import { stretched } from "./similarities.js";
import { around, watchZoom } from "./zoom.js";

const MARGIN = 34;

let current = null;

/**
 * Draws the map.
 * @param {object} shown `names`: of all points; `matrix`: their similarities; `asked`: how many of the first ones
 *   belong to the query; `isCenter`: whether the first is the query itself instead of a word; `question`
 */
export function drawMap(shown, part = "") {
  const { names, matrix, asked, isCenter, question } = shown;
  const { points, shown: share } = plane(matrix);
  const lines = spanningTree(matrix).map(([from, to]) => ({ from, to, element: draw("line", { class: "edge" }) }));
  const nearness = stretched(matrix[0].slice(asked));
  const marks = names.map((name, index) => {
    const isWord = index > 0 || !isCenter;
    const mark = draw(
      isWord ? "a" : "g",
      {
        class: index < asked ? "point asked" : "point",
        "data-word": isWord ? name : null,
        href: isWord ? ofWord(name, question) : null,
        "aria-label": describe(shown, index),
        role: isWord ? null : "img",
        "--share": nearness(matrix[0][index]),
      },
      draw("title", {}, describe(shown, index)),
      draw("circle", { r: index < asked ? 7 : 5 }),
      draw("text", {}, name),
    );
    return { element: mark, text: mark.querySelector("text"), index };
  });
  const chart = draw(
    "svg",
    { class: "map", role: "group", "aria-label": `Map of ${names.length} words` },
    draw("g", {}, lines.map((line) => line.element)),
    // In the order of the list; the query's own marks last, so that they are on top.
    draw("g", {}, [...marks.slice(asked), ...marks.slice(0, asked)].map((mark) => mark.element)),
  );
  byId("map").replaceChildren(chart);
  const first = isCenter ? "the query" : names[0];
  byId("map-legend").replaceChildren(
    `Similar words lie close together, and lines join the nearest. A stronger colour means nearer to ${within(first)}.${part}`,
    make(
      "details",
      {},
      make("summary", {}, "How accurate is the map?"),
      `The map is a projection onto the first two principal components of the unit vectors. They keep ${Math.round(share * 100)} % ` +
        "of the variance, so distances on the map are approximate. Two things are exact: the cosine distance (1 − similarity) shown " +
        "for each word, and the lines, which form the minimum spanning tree of the cosine distances.",
    ),
  );
  current?.stop();
  current = { chart, points, lines, marks, zoom: { scale: 1, x: 0, y: 0 }, width: 0, height: 0 };
  current.stop = watchZoom(chart, { get: () => current.zoom, set: zoomTo });
  for (const { element, index } of marks) element.addEventListener("focusin", () => bringIntoSight(index));
  fit();
}

/** A point's description: its exact distance to the query, or to the query's first word. */
function describe({ names, matrix, isCenter }, index) {
  const name = names[index];
  if (index === 0) return isCenter ? `the query: ${name}` : name;
  const first = isCenter ? "the query" : names[0];
  return `${name}: cosine distance ${number(1 - matrix[0][index], 4)} to ${first}`;
}

/** Fits the available space. */
export function fit() {
  if (!current) return;
  const width = byId("map").clientWidth;
  if (width === 0) return;
  const height = Math.round(Math.min(Math.max(width * 0.9, 260), 460));
  Object.assign(current, { width, height });
  current.chart.setAttribute("viewBox", `0 0 ${width} ${height}`);
  current.chart.setAttribute("width", width);
  current.chart.setAttribute("height", height);
  settle();
}

/** Keeps the focused word in view. */
function bringIntoSight(index) {
  const { at, zoom, width, height } = current;
  const [x, y] = at[index];
  if (x >= 0 && x <= width && y >= 0 && y <= height) return;
  zoomTo({ ...zoom, x: zoom.x + width / 2 - x, y: zoom.y + height / 2 - y });
}

/** Zooms by this factor, around the query if it is in view; 0 resets. */
export function zoomBy(factor) {
  if (!current) return;
  if (factor === 0) return zoomTo({ scale: 1, x: 0, y: 0 });
  const { zoom, width, height, at } = current;
  const [x, y] = at[0];
  const isInSight = x >= 0 && x <= width && y >= 0 && y <= height;
  zoomTo(isInSight ? around(zoom, factor, x, y) : around(zoom, factor, width / 2, height / 2));
}

function zoomTo(zoom) {
  const { width, height } = current;
  // Do not leave the map.
  const clamp = (value, size) => Math.min(Math.max(value, size * (1 - zoom.scale)), 0);
  current.chart.classList.toggle("zoomed", zoom.scale > 1);
  current.zoom = { scale: zoom.scale, x: clamp(zoom.x, width), y: clamp(zoom.y, height) };
  settle();
}

/** Positions everything; both axes have the same scale. */
function settle() {
  const { points, lines, marks, zoom, width, height } = current;
  const [x, y] = [0, 1].map((axis) => points.map((point) => point[axis]));
  const [left, right, top, bottom] = [Math.min(...x), Math.max(...x), Math.min(...y), Math.max(...y)];
  const unit = Math.min(
    (width - 2 * MARGIN) / Math.max(right - left, 1e-9),
    (height - 2 * MARGIN) / Math.max(bottom - top, 1e-9),
  );
  const at = points.map(([x, y]) => [
    (width / 2 + (x - (left + right) / 2) * unit) * zoom.scale + zoom.x,
    (height / 2 + (y - (top + bottom) / 2) * unit) * zoom.scale + zoom.y,
  ]);
  for (const { from, to, element } of lines) {
    const ends = { x1: at[from][0], y1: at[from][1], x2: at[to][0], y2: at[to][1] };
    for (const [name, value] of Object.entries(ends)) element.setAttribute(name, value.toFixed(1));
  }
  for (const { element, index } of marks) {
    element.setAttribute("transform", `translate(${at[index].map((value) => value.toFixed(1))})`);
  }
  placeLabels(marks, at, width, height);
  current.at = at;
}
