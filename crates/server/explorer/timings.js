/** The timings of the last answers. */

import { byId, draw, make } from "./dom.js";

const KEPT = 32;
const history = [];

/**
 * Adds an answer's timings, in milliseconds: `queue`, `engine` and `total` of the service, and the `roundTrip`.
 * `isUnchanged`: whether the service confirmed an answer that the page had, without a search.
 */
export function showTimings({ queue = 0, engine = 0, total = 0, roundTrip, isUnchanged = false }) {
  // With several searches, one may wait while another one runs.
  const searching = Math.min(engine, total);
  const waiting = Math.min(queue, total - searching);
  const stages = [
    ["queue", "queue", waiting],
    ["engine", "engine", searching],
    ["service", "rest of the service", total - searching - waiting],
    ["way", "network and browser", Math.max(roundTrip - total, 0)],
  ];
  history.push({ stages, total, roundTrip });
  if (history.length > KEPT) history.shift();
  const rows = stages.map(([name, label, milliseconds]) =>
    make("tr", {}, make("th", { scope: "row", class: `stage-${name}` }, label), make("td", {}, time(milliseconds))),
  );
  const body = make("tbody", {}, rows);
  const sum = make("tr", { class: "sum" }, make("th", { scope: "row" }, "total"), make("td", {}, time(roundTrip)));
  byId("timings").replaceChildren(
    isUnchanged
      ? make("p", { class: "big unchanged" }, "Unchanged", make("small", {}, " (304): the service confirmed the answer that this page had"))
      : make("p", { class: "big" }, time(total), make("small", {}, " in the service")),
    make("table", {}, make("caption", { class: "hidden" }, "The last answer"), body, make("tfoot", {}, sum)),
    chart(),
    make("p", { class: "legend" }, history.length === 1 ? "The last answer." : `The last ${history.length} answers, newest on the right.`),
  );
}

function chart() {
  const [width, height] = [320, 44];
  const most = Math.max(...history.map((answer) => answer.roundTrip));
  const step = width / KEPT;
  const bars = history.flatMap(({ stages }, index) => {
    let y = height;
    return stages.map(([name, , milliseconds]) => {
      const tall = (milliseconds / most) * height;
      y -= tall;
      const x = width - (history.length - index) * step;
      return draw("rect", { class: `stage-${name}`, x, y, width: step - 1, height: tall });
    });
  });
  return draw("svg", { class: "bars", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", "aria-hidden": "true" }, bars);
}

function time(milliseconds) {
  if (milliseconds >= 1000) return `${(milliseconds / 1000).toFixed(2)} s`;
  if (milliseconds >= 10) return `${milliseconds.toFixed(1)} ms`;
  return `${milliseconds.toFixed(2)} ms`;
}
