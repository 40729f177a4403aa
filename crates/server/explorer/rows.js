/** The rows of a model: page by page, one of them, and a form for a new one. */

import { ask } from "./api.js";
import { ofWord, write } from "./address.js";
import { confirmed, failure } from "./change.js";
import { count, make, within } from "./dom.js";
import { shown } from "./filter.js";
import { go } from "./form.js";
import { described, isKnown, loadModels } from "./model.js";
import { formOf } from "./row_form.js";
import { manage } from "./tables.js";

/** Maximum number of attributes that the list shows. */
const MOST_COLUMNS = 12;
/** Maximum number of keys that a question names. */
const MOST_NAMED = 5;

/** The last change in words, until the view is shown that follows it. */
let done = "";
/** By the row before a page, what came before the page before it; of one filter and length. */
let pages = { of: "", before: new Map() };

/**
 * Requests the rows; returns what every view returns (see neighbours.js), but for timings, which
 * are those of searches.
 */
export async function find(question, signal) {
  const { timings, ...found } = await (question.add
    ? newRow(question, signal)
    : question.rows === ""
      ? page(question, signal)
      : oneRow(question, signal));
  if (done !== "") found.status = `${done} ${found.status}`;
  done = "";
  return found;
}

/** The view of these rows, after a change. */
function after(change, question) {
  done = change;
  go(question);
}

const address = (question, other) =>
  write({ ...question, kind: "rows", rows: "", after: null, add: null, ...other });
const list = (question) => ({ ...question, kind: "rows", rows: "", add: null });

/** The answer, after the page knows the model that it is of. */
async function read(parameters, question, signal) {
  const found = await ask("rows", { parameters, model: question.model, signal });
  if (!isKnown(found.answer)) await loadModels(question, signal);
  return found;
}

const READ_ONLY =
  "These rows can't be changed here: only tables in the folder of the setting models_dir can " +
  "(kindred serve --models-dir DIR).";

async function page(question, signal) {
  const { filter, k, model: name } = question;
  const of = JSON.stringify([name, filter, k]);
  if (pages.of !== of) pages = { of, before: new Map() };
  const parameters = { limit: k, with_vectors: false, ...(filter && { filter }) };
  const asked = (after) => read({ ...parameters, ...(after && { after }) }, question, signal);
  let from = question.after;
  let note = null;
  const found = await asked(from).catch((error) => {
    if (error.document?.code !== "position_gone") throw error;
    from = null;
    note =
      "The pages of before are not kept any more, because rows were changed. " +
      "This is the first page of the rows as they are now.";
    return asked(null);
  });
  const { rows, next, position } = found.answer;
  const model = described(name);
  if (next) pages.before.set(rowOf(next), from);
  if (position !== undefined && position !== model.position)
    note ??= `These pages have the rows as they were at position ${count(position)}.`;
  const names = (model.attributes ?? []).map((one) => one.name).slice(0, MOST_COLUMNS);
  const inAll = filter ? "" : `${rowsIn(model.rows)} in all, `;
  const at = position === undefined ? "" : `, position ${count(position)}`;
  return {
    ...found,
    title: filter ? `Rows of ${model.name} that pass the filter` : `Rows of ${model.name}`,
    content: [
      model.writable ? null : make("p", { class: "note" }, READ_ONLY),
      note && make("p", { class: "note" }, note),
      model.writable ? tools(rows, { ...question, after: from }) : null,
      rows.length === 0 ? nothing(from, model) : table(rows, names, question, model.writable),
      pager(question, from, next),
      model.writable
        ? manage(question, (change) => after(change, list({ ...question, after: null })))
        : null,
    ],
    status: `${inAll}${count(rows.length)} on this page${at}`,
    table: rows.length > 0 && {
      columns: ["key", "row", ...names],
      rows: rows.map((row) =>
        [row.key, row.row, ...names.map((name) => row.attributes?.[name])].map(inCell),
      ),
    },
  };
}

const inCell = (value) => (Array.isArray(value) ? JSON.stringify(value) : value);

/** The number of the row before a page. */
const rowOf = (after) => after.split("-")[1];

function nothing(from, { rows, writable }) {
  const none = writable ? "This table has no rows yet." : "This model has no rows.";
  const ofPage = from ? "No row is left here." : "No row passes the filter.";
  return make("p", {}, rows > 0 ? ofPage : none);
}

function pager(question, from, next) {
  const back = from && pages.before.get(rowOf(from));
  // The page before is of the same position.
  const before = back && `${from.split("-")[0]}-${rowOf(back)}`;
  const link = (after, text) => make("a", { href: address(question, { after }) }, text);
  const links = [
    from && back !== null ? link(null, "First page") : null,
    from && back !== undefined ? link(before, "Previous page") : null,
    next ? link(next, "Next page") : null,
  ].filter((one) => one !== null);
  return links.length > 0 ? make("nav", { class: "pager", "aria-label": "Pages" }, links) : null;
}

function table(rows, names, question, isWritable) {
  const all = make("input", { type: "checkbox", "aria-label": "Select all rows of this page" });
  const head = (name) => make("th", { scope: "col" }, name);
  const cell = (value, name) =>
    make(
      "td",
      { "data-name": name },
      value === undefined || value === null ? "" : brief(shown(value)),
    );
  const line = ({ key, attributes = {} }) =>
    make(
      "tr",
      {},
      isWritable
        ? make(
            "td",
            { class: "choice" },
            make("input", { type: "checkbox", value: key, "aria-label": `Select ${within(key)}` }),
          )
        : null,
      make(
        "th",
        { scope: "row" },
        make("a", { href: address(question, { rows: key }), title: key }, brief(key)),
      ),
      names.map((name) => cell(attributes[name], name)),
      make(
        "td",
        { class: "near" },
        make(
          "a",
          { href: ofWord(key, question), "aria-label": `Nearest to ${within(key)}` },
          "Nearest",
        ),
      ),
    );
  const body = make("tbody", {}, rows.map(line));
  all.addEventListener("change", () => {
    for (const box of body.querySelectorAll("input")) box.checked = all.checked;
  });
  const nearest = make("th", { scope: "col" }, make("span", { class: "hidden" }, "Search"));
  const heads = make(
    "tr",
    {},
    isWritable ? make("td", { class: "choice" }, all) : null,
    head("key"),
    names.map(head),
    nearest,
  );
  const region = { class: "scrolls", role: "region", tabindex: "0", "aria-label": "Rows" };
  return make("div", region, make("table", { class: "rows" }, make("thead", {}, heads), body));
}

/** Texts may be of any length. */
const brief = (text) =>
  make(
    "span",
    { class: "brief" },
    [...text.slice(0, 400)].slice(0, 200).join("") + (text.length > 200 ? "…" : ""),
  );

/** What can be done with the rows of a page. */
function tools(rows, question) {
  const { filter, model } = question;
  const place = make("div", { role: "alert" });
  const chosen = () =>
    [...document.querySelectorAll("table.rows tbody input:checked")].map((box) => box.value);
  const remove = async (body) => {
    try {
      const { answer } = await ask("rows/delete", { body, model });
      // The same place in the rows as they are now.
      const from = question.after && `${answer.position}-${rowOf(question.after)}`;
      after(`${rowsIn(answer.deleted)} deleted.`, list({ ...question, after: from }));
    } catch (error) {
      failure(error, place, () => remove(body));
    }
  };
  const removeChosen = async () => {
    place.replaceChildren();
    const keys = chosen();
    if (keys.length === 0)
      return place.replaceChildren(make("p", { class: "note" }, "Select rows first."));
    const named =
      keys.slice(0, MOST_NAMED).map(within).join(", ") + (keys.length > MOST_NAMED ? " …" : "");
    if (
      await confirmed(`Delete ${rowsIn(keys.length)}?`, `${named}. This can't be undone.`, "Delete")
    )
      await remove({ keys });
  };
  const removeAll = async () => {
    try {
      const { answer } = await ask("count", { parameters: { filter }, model });
      const number = `${count(answer.count)} of ${count(answer.rows)}`;
      const title = `Delete all rows that pass the filter: ${number}?`;
      if (await confirmed(title, `${filter}\nThis can't be undone.`, "Delete"))
        await remove({ filter });
    } catch (error) {
      failure(error, place, removeAll);
    }
  };
  const button = (text, onclick) => make("button", { type: "button", onclick }, text);
  return [
    make(
      "p",
      { class: "tools" },
      make("a", { class: "button", href: address(question, { add: "1" }) }, "Add a row"),
      rows.length > 0 ? button("Delete selected rows …", removeChosen) : null,
      filter && rows.length > 0 ? button("Delete all that pass the filter …", removeAll) : null,
    ),
    place,
  ];
}

const rowsIn = (number) => `${count(number)} ${number === 1 ? "row" : "rows"}`;

async function oneRow(question, signal) {
  const { rows: key } = question;
  const found = await read({ key }, question, signal).catch((error) => {
    if (error.document?.code !== "no_such_row") throw error;
    return null;
  });
  const model = described(question.model);
  const add = (other, text) => make("a", { class: "button", href: address(question, other) }, text);
  const links = (...more) =>
    make(
      "p",
      { class: "tools" },
      make("a", { class: "button", href: address(question) }, "All rows"),
      more,
    );
  if (found === null) {
    return {
      title: `No row “${key}”`,
      content: [
        make("p", {}, `${model.name} has no row with this key.`),
        links(model.writable ? add({ rows: key, add: "1" }, "Add it") : null),
      ],
      status: "",
    };
  }
  const row = found.answer;
  const near = make("a", { class: "button", href: ofWord(key, question) }, "Nearest");
  const at = row.position === undefined ? "" : `, position ${count(row.position)}`;
  return {
    ...found,
    title: `Row “${key}”`,
    content: model.writable
      ? [
          formFor(question, model, row),
          links(near, add({ add: "1" }, "Add a row"), remover(question)),
        ]
      : [facts(row), make("p", { class: "note" }, READ_ONLY), links(near)],
    status: `Row number ${count(row.row)}${at}`,
  };
}

/** A row that can only be read. */
function facts({ vector, bias, attributes = {} }) {
  const line = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
  return make(
    "dl",
    { class: "row-facts" },
    Object.entries(attributes).map(([name, value]) => line(name, shown(value))),
    bias === undefined ? null : line("Bias", String(bias)),
    line("Vector", vector.join(", ")),
  );
}

function remover(question) {
  const { rows: key, model } = question;
  const place = make("span", { role: "alert" });
  const remove = async () => {
    try {
      const { answer } = await ask("rows/delete", { body: { keys: [key] }, model });
      after(`${rowsIn(answer.deleted)} deleted.`, list({ ...question, after: null }));
    } catch (error) {
      failure(error, place, remove);
    }
  };
  const onclick = async () => {
    if (await confirmed("Delete this row?", `${within(key)}. This can't be undone.`, "Delete"))
      await remove();
  };
  return [make("button", { type: "button", onclick }, "Delete …"), place];
}

async function newRow(question, signal) {
  await read({ limit: 1, with_vectors: false }, question, signal);
  return {
    title: "New row",
    content: [formFor(question, described(question.model), null)],
    status: "",
  };
}

const formFor = (question, model, row) =>
  formOf(question, model, row, {
    saved: ({ inserted }, key) =>
      after(inserted === 1 ? "Row added." : "Row replaced.", { ...list(question), rows: key }),
    left: () => go({ ...list(question), after: null }),
  });
