/** Helpers to create and change elements. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. Attributes that are functions are listeners (`onclick`), names with two dashes are CSS
 * properties (the page's policy forbids `style` attributes), and `null`, `undefined` and `false` omit an attribute.
 */
export function make(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function draw(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return element;
}

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Formats a similarity. */
export function number(score, digits = 3) {
  const text = score.toFixed(digits);
  return Number(text) === 0 ? (0).toFixed(digits) : text.replace("-", "−");
}

/** Right-to-left characters, and characters that change the direction. */
const TURNING = /[\u0590-\u08ff\u200e\u200f\u202a-\u202e\u2066-\u2069\ufb1d-\ufeff]/;

/** A word within a sentence: shortened, and isolated so that its direction does not affect the rest. */
export function within(word) {
  const letters = [...word];
  const short = letters.length > 40 ? `${letters.slice(0, 39).join("")}…` : word;
  return TURNING.test(short) ? `\u2068${short}\u2069` : short;
}

/** 30000 as 30,000. */
export const count = (value) => value.toLocaleString("en");
