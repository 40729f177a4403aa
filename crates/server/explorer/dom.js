/** Elements, made and changed in one line. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * An HTML element. Attributes that are functions are listeners (`onclick`), names with two dashes are CSS
 * properties (the page's policy forbids `style` attributes), and `null`, `undefined` and `false` leave one out.
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

/** A similarity as people read it; all digits are in its title. */
export function number(score, digits = 3) {
  return (Object.is(score, -0) ? 0 : score).toFixed(digits).replace("-", "−");
}

/** 30000 as 30,000. */
export const count = (value) => value.toLocaleString("en");
