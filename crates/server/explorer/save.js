/** Saves an answer as a file: its table as CSV (RFC 4180), map and matrix as SVG. */

import { byId, draw, make } from "./dom.js";

/** The time limit for the browser to begin reading the file. */
const KEPT_MS = 60_000;

/** Numbers as they are, so that they are read as the same numbers; texts in quotes. */
const cell = (value) => (typeof value === "number" ? String(value) : `"${String(value ?? "").replaceAll('"', '""')}"`);

/** A table as CSV: its columns' names, then its rows. */
export const csv = ({ columns, rows }) => [columns, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");

/** A title as a part of a file's name. */
const inName = (title) => title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60).toLowerCase() || "answer";

function save(name, type, content) {
  const href = URL.createObjectURL(new Blob([content], { type }));
  make("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), KEPT_MS);
}

/** Saves the table of the answer with this title. */
export const saveTable = (title, table) => save(`kindred-${inName(title)}.csv`, "text/csv;charset=utf-8", csv(table));

/** Saves the drawing in this element, if it has one. */
export function savePicture(title, id) {
  const chart = byId(id).querySelector("svg");
  if (chart) save(`kindred-${inName(title)}-${id}.svg`, "image/svg+xml", standalone(chart));
}

/** The properties that make a drawing look the same without this page's style sheets. */
const OF_TEXT = ["stroke-width", "font-size", "font-weight", "font-family", "text-anchor", "dominant-baseline", "paint-order", "visibility"];
const COLOURS = ["fill", "stroke"];

/** Characters that XML does not allow. */
const NOT_IN_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

/** A drawing that needs nothing of this page: styles become attributes, links become groups. */
function standalone(chart) {
  const copy = chart.cloneNode(true);
  const ground = getComputedStyle(chart.closest(".card")).backgroundColor;
  const plain = solidOn(ground);
  const copies = [...copy.querySelectorAll("*")];
  [...chart.querySelectorAll("*")].forEach((element, index) => {
    const style = getComputedStyle(element);
    const to = copies[index];
    if (element.matches(".cursor")) return to.remove();
    for (const name of ["class", "style", "data-word", "tabindex", "role", "aria-label"]) to.removeAttribute(name);
    if (!element.matches("circle, line, rect, text")) return;
    for (const name of COLOURS) to.setAttribute(name, plain(style.getPropertyValue(name)));
    if (!element.matches("text")) return to.setAttribute("stroke-width", style.strokeWidth);
    for (const name of OF_TEXT) to.setAttribute(name, style.getPropertyValue(name));
  });
  for (const link of copy.querySelectorAll("a")) {
    const group = draw("g", { transform: link.getAttribute("transform") });
    group.append(...link.childNodes);
    link.replaceWith(group);
  }
  for (const name of ["class", "style", "tabindex", "role"]) copy.removeAttribute(name);
  copy.prepend(draw("rect", { width: "100%", height: "100%", fill: plain(ground) }));
  return new XMLSerializer().serializeToString(copy).replace(NOT_IN_XML, "\ufffd");
}

/** Returns a function to the form of a colour that every program reads, as it looks on this ground. */
function solidOn(ground) {
  const canvas = make("canvas", { width: 1, height: 1 });
  const pixel = canvas.getContext("2d", { willReadFrequently: true });
  const known = new Map([["none", "none"]]);
  const measured = (colour) => {
    for (const layer of [ground, colour]) {
      pixel.fillStyle = layer;
      pixel.fillRect(0, 0, 1, 1);
    }
    return `rgb(${[...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).join(",")})`;
  };
  return (colour) => {
    if (!known.has(colour)) known.set(colour, measured(colour));
    return known.get(colour);
  };
}
