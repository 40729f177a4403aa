/** The filter: its field with completion, its tests as chips, and how many rows pass. */

import { ask } from "./api.js";
import { combobox } from "./combobox.js";
import { byId, count, make, within } from "./dom.js";
import { asValue, completions, testsOf } from "./filter_text.js";
import { attributesOf } from "./model.js";

/** The kinds of query that have a filter. */
const FILTERED = ["word", "text", "analogy", "compare", "documents", "rows"];
/** Maximum number of attributes that a line of an answer shows. */
export const MOST_ATTRIBUTES = 12;

/** Called when a chip was removed. */
let whenRemoved = () => {};

/** Shows the filter of a query; nothing if the model has no attributes and the query has no filter. */
export function showFilter({ filter, model }) {
  const attributes = attributesOf(model);
  const field = byId("filter");
  field.value = filter ?? "";
  field.closest(".field").hidden = attributes.length === 0 && !filter;
  field.placeholder = example(attributes);
  const tests = filter ? testsOf(filter) : [];
  const chip = (test, index) => {
    const rest = tests.filter((_, place) => place !== index).join(" AND ");
    const remove = () => {
      field.value = rest;
      field.focus();
      whenRemoved();
    };
    return make("button", { type: "button", class: "chip", title: test, onclick: remove }, make("span", { class: "hidden" }, "Remove "), within(test), make("span", { "aria-hidden": "true" }, " ×"));
  };
  byId("tests").replaceChildren(...tests.map(chip));
  byId("passing").textContent = "";
}

function example(attributes) {
  const { name, frequent } = attributes.find(({ frequent }) => frequent) ?? {};
  if (name) return `${name} = ${asValue(frequent[0].value)}`;
  return attributes.length > 0 ? `${attributes[0].name} EXISTS` : "";
}

/** Shows how many rows pass the filter of a query. */
export async function showPassing({ kind, filter, model }, signal) {
  if (!filter || !FILTERED.includes(kind)) return;
  const { answer } = await ask("count", { parameters: { filter }, model, signal });
  byId("passing").textContent = `${count(answer.count)} of ${count(answer.rows)} ${kind === "documents" ? "documents" : "words"} pass`;
}

/** The attributes to request with each neighbour, as the service names the option. */
export function wanted({ model }) {
  const names = attributesOf(model).map(({ name }) => name);
  return names.length > 0 && { with_attributes: names.length > MOST_ATTRIBUTES ? names.slice(0, MOST_ATTRIBUTES) : true };
}

/** The value of an attribute as a text. */
export const shown = (value) => ([value].flat().length === 0 ? "[]" : [value].flat().join(", "));

/** The attributes of a neighbour, or null. */
export function attributesLine(attributes) {
  const there = Object.entries(attributes ?? {}).filter(([, value]) => value !== null);
  const part = ([name, value], index) => [index > 0 ? " · " : "", make("span", { class: "name" }, name), " ", within(shown(value))];
  return there.length > 0 ? make("small", { class: "attributes" }, there.map(part)) : null;
}

/** Columns and cells of attributes for the table of an answer. */
export function attributesTable(hits) {
  const columns = Object.keys(hits[0]?.attributes ?? {});
  const cell = (value) => (Array.isArray(value) ? JSON.stringify(value) : value);
  return { columns, cells: (hit) => columns.map((name) => cell(hit.attributes[name])) };
}

/** Starts listening: `model()` is the name of the model, `changed()` runs the query with the filter of the field. */
export function watchFilter({ model, changed }) {
  const field = byId("filter");
  whenRemoved = changed;
  const find = () => completions(field.value, field.selectionStart, attributesOf(model()));
  const take = (text) => {
    const { from, to } = find();
    const isApart = text.endsWith("[") || field.value[to] === " ";
    field.setRangeText(text + (isApart ? "" : " "), from, to, "end");
    return true;
  };
  combobox(field, { label: "Suggested pieces of the filter", find, take });
  field.addEventListener("change", changed);
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.defaultPrevented) return;
    event.preventDefault();
    changed();
  });
}
