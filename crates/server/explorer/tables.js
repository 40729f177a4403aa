/** Tables are made, folded and deleted. */

import { ask } from "./api.js";
import { DEFAULT_K } from "./address.js";
import { confirmed, failure } from "./change.js";
import { count, make } from "./dom.js";
import { go } from "./form.js";
import { described, isDefault, loadModels } from "./model.js";

const TYPES = ["text", "list", "integer", "number", "boolean", "date-time", "stored"];
const NAME = "[A-Za-z0-9][A-Za-z0-9._\\-]{0,63}";

/** A service without tables: how one is made. */
export const noTables = () => ({
  title: "This service has no tables yet",
  content: [
    make(
      "p",
      {},
      "A table has rows: each has a key, a vector, and attributes by which it can be filtered. " +
        "Make one, then add rows, on this page or over HTTP.",
    ),
    maker(),
  ],
  status: "",
});

const plain = { type: "text", spellcheck: "false", autocapitalize: "none", autocomplete: "off" };

/** A form that makes a table. */
function maker() {
  const name = make("input", {
    ...plain,
    id: "table-name",
    required: true,
    pattern: NAME,
    title: "Letters, digits, dots, dashes and underscores",
  });
  const dim = make("input", {
    type: "number",
    id: "table-dim",
    required: true,
    min: 1,
    max: 65_536,
    inputmode: "numeric",
  });
  const metric = make(
    "select",
    { id: "table-metric" },
    ["cosine", "dot"].map((one) => make("option", {}, one)),
  );
  const lines = make("div", { class: "attribute-lines" });
  const place = make("div", { role: "alert" });
  const add = () => {
    const name = make("input", {
      ...plain,
      "aria-label": "Name of an attribute",
      placeholder: "name",
    });
    lines.append(
      make(
        "p",
        {},
        name,
        make(
          "select",
          { "aria-label": "Its type" },
          TYPES.map((one) => make("option", {}, one)),
        ),
      ),
    );
    return name;
  };
  const send = async () => {
    const all = [...lines.children].map(({ children: [name, type] }) => [
      name.value.trim(),
      type.value,
    ]);
    const attributes = Object.fromEntries(all.filter(([name]) => name !== ""));
    try {
      const { answer } = await ask("models", {
        body: { name: name.value, dim: Number(dim.value), metric: metric.value, attributes },
      });
      await moveTo(answer.name);
    } catch (error) {
      failure(error, place, send);
    }
  };
  const onsubmit = (event) => {
    event.preventDefault();
    send();
  };
  const labelled = (text, input) =>
    make("div", { class: "field" }, make("label", { for: input.id }, text), input);
  add();
  return make(
    "div",
    {},
    make(
      "form",
      { class: "row", onsubmit },
      make(
        "div",
        { class: "fields" },
        labelled("Name", name),
        labelled("Numbers in a vector", dim),
        labelled("Metric", metric),
      ),
      make(
        "fieldset",
        {},
        make("legend", {}, "Attributes"),
        lines,
        make("button", { type: "button", onclick: () => add().focus() }, "Another attribute"),
      ),
      make(
        "p",
        { class: "tools" },
        make("button", { type: "submit", class: "go" }, "Make the table"),
      ),
    ),
    place,
  );
}

/** Shows the rows of a table; of the default one, if there is none of this name. */
async function moveTo(name) {
  await loadModels({ model: name });
  const model = name && described(name) && !isDefault(name) ? name : null;
  go({ kind: "rows", rows: "", model, k: DEFAULT_K });
}

/** What can be done with a whole table; `changed(text)` tells of it and shows the rows again. */
export function manage(question, changed) {
  const { name, rows } = described(question.model);
  const place = make("div", { role: "alert" });
  const fold = async () => {
    try {
      const { answer } = await ask("fold", { method: "POST", model: question.model });
      changed(
        {
          folded: "The changes are folded.",
          unchanged: "There is nothing to fold.",
          running: "The fold goes on.",
        }[answer.outcome],
      );
    } catch (error) {
      failure(error, place, fold);
    }
  };
  const remove = async () => {
    try {
      await ask(`models/${encodeURIComponent(name)}`, { method: "DELETE" });
      await moveTo(null);
    } catch (error) {
      failure(error, place, remove);
    }
  };
  const removeIfSure = async () => {
    const text = `Its ${count(rows)} rows and its folder are deleted. This can't be undone.`;
    if (await confirmed(`Delete the table ${name}?`, text, "Delete the table")) await remove();
  };
  const button = (text, onclick) => make("button", { type: "button", onclick }, text);
  return make(
    "details",
    { class: "manage" },
    make("summary", {}, "Tables"),
    make(
      "p",
      { class: "note" },
      "A fold makes opening and searches faster. It begins by itself when many rows were changed.",
    ),
    make(
      "p",
      { class: "tools" },
      button("Fold the changes", fold),
      button("Delete this table …", removeIfSure),
    ),
    place,
    make("h3", {}, "Make a table"),
    maker(),
  );
}
