/** The form of a row: its key, its vector, and its attributes by their types. */

import { ask } from "./api.js";
import { failure } from "./change.js";
import { count, make } from "./dom.js";
import { shown } from "./filter.js";
import { suggest } from "./suggest.js";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

/** Forms that were typed in and not saved, by what they are about. */
const drafts = new Map();

/** The numbers of a vector as typed, in brackets or not; `wrong`: the first piece that is none. */
export function numbersIn(text) {
  const pieces = text
    .trim()
    .replace(/^\[/, "")
    .replace(/\]$/, "")
    .split(/[\s,;]+/)
    .filter((piece) => piece !== "");
  return { numbers: pieces.map(Number), wrong: pieces.find((piece) => !NUMBER.test(piece)) };
}

/** A value of an attribute as it is typed; throws what is expected instead. */
const READ = {
  text: (typed) => typed,
  stored: (typed) => typed,
  list: (typed) => {
    if (typed.trim().startsWith("[")) {
      try {
        return JSON.parse(typed);
      } catch {
        throw new Error("This is no JSON array; or write one text on each line");
      }
    }
    return typed.split("\n").filter((line) => line.trim() !== "");
  },
  integer: (typed) => {
    if (!/^\s*[+-]?\d+\s*$/.test(typed)) throw new Error("Write an integer, such as 12");
    const value = Number(typed);
    if (Number.isSafeInteger(value)) return value;
    if (!JSON.rawJSON) throw new Error("This browser can't send integers of that size");
    return BigInt(typed.trim().replace("+", ""));
  },
  number: (typed) => {
    if (!NUMBER.test(typed.trim())) throw new Error("Write a number, such as 9.5");
    return Number(typed);
  },
  boolean: (typed) => typed === "true",
  "date-time": (typed) => typed.trim(),
};

const HINTS = {
  list: "list, a text on each line",
  "date-time": "date-time, such as 2026-01-31T12:00:00Z",
};

/** A value as a text to change. */
function typedOf(value, type) {
  if (value === undefined || value === null) return "";
  if (type !== "list") return String(value);
  return value.some((text) => /[\r\n]/.test(text) || text.trim() === "")
    ? JSON.stringify(value)
    : value.join("\n");
}

let made = 0;

/** A field with its label, its type, a hint, and a place for what is wrong with it. */
function field(label, input, { type = "", hint = "" } = {}) {
  made += 1;
  const id = `field-${made}`;
  input.id = id;
  input.setAttribute("aria-describedby", `${id}-hint ${id}-fault`);
  const note = make("p", { class: "note", id: `${id}-hint` }, hint);
  const fault = make("p", { class: "fault", id: `${id}-fault` });
  const show = (text) => {
    fault.textContent = text;
    if (text) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  };
  input.addEventListener("input", () => show(""));
  const name = make("label", { for: id }, label, type && make("small", {}, ` ${type}`));
  return { input, note, show, box: make("div", { class: "field" }, name, input, note, fault) };
}

const plain = { type: "text", spellcheck: "false", autocapitalize: "none", autocomplete: "off" };

function attributeField({ name, type }, value) {
  const typed = typedOf(value, type);
  const isLong =
    ["list", "stored"].includes(type) || (type === "text" && (/[\r\n]/.test(typed) || typed.length > 80));
  const choices = ["", "true", "false"].map((text) =>
    make("option", { value: text }, text || "missing"),
  );
  const input =
    type === "boolean"
      ? make("select", {}, choices)
      : isLong
        ? make("textarea", { rows: 3, spellcheck: "false" })
        : make("input", plain);
  input.value = typed;
  const before = input.value;
  const part = field(name, input, { type: HINTS[type] ?? type });
  // What nobody touches stays exactly what it is.
  const read = () =>
    input.value === before ? value : input.value === "" ? undefined : READ[type](input.value);
  return { ...part, name, read };
}

function vectorField(dim, vector, model) {
  const input = make("textarea", { rows: 3, spellcheck: "false", autocomplete: "off" });
  input.value = vector ? vector.join(", ") : "";
  const before = input.value;
  const from = make("input", { ...plain, id: `copy-${(made += 1)}` });
  const part = field("Vector", input);
  part.box.classList.add("whole");
  const tell = () => {
    const { numbers, wrong } = numbersIn(input.value);
    const rest = wrong === undefined ? "" : `; “${wrong.slice(0, 40)}” is none`;
    part.note.textContent = `${count(numbers.length)} of ${count(dim)} numbers${rest}`;
  };
  const copy = async () => {
    try {
      const { answer } = await ask("rows", { parameters: { key: from.value }, model });
      input.value = answer.vector.join(", ");
      input.dispatchEvent(new Event("input", { bubbles: true }));
    } catch (error) {
      part.show(`${error.message}.`);
    }
  };
  input.addEventListener("input", tell);
  from.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.defaultPrevented) return;
    event.preventDefault();
    copy();
  });
  const button = make("button", { type: "button", onclick: copy }, "Copy");
  const box = make(
    "div",
    { class: "field copy whole" },
    make("label", { for: from.id }, "Or copy the vector of the row"),
    make("span", {}, from, button),
  );
  suggest(from, { model: () => model, chosen: copy });
  tell();
  const read = () => {
    const { numbers, wrong } = numbersIn(input.value);
    if (input.value === before && vector) return vector;
    if (wrong !== undefined) throw new Error(`“${wrong.slice(0, 40)}” is no number`);
    if (numbers.length !== dim)
      throw new Error(
        `A vector of this table has ${count(dim)} numbers, not ${count(numbers.length)}`,
      );
    return numbers;
  };
  return { ...part, box: [part.box, box], read };
}

/**
 * The form of a row; one that was typed in and not saved is kept until it is.
 * @param {?object} row the row as it is; null: a new one
 * @param {object} calls `saved(answer, key)` and `left()`, after it was saved or is given up
 */
export function formOf(question, model, row, { saved, left }) {
  const about = JSON.stringify([model.name, model.version, question.rows, row === null]);
  if (drafts.has(about)) return drafts.get(about);
  const key = field("Key", make("input", plain), {
    hint: "The row with this key is replaced, if there is one.",
  });
  key.box.classList.add("whole");
  key.input.value = question.rows;
  const hint = key.note.textContent;
  key.input.addEventListener("input", () => {
    const isSpaced = key.input.value.trim() !== key.input.value;
    key.note.textContent = isSpaced
      ? "This key begins or ends with a space, which belongs to it."
      : hint;
  });
  const vector = vectorField(model.dim, row?.vector, question.model);
  const bias =
    model.metric === "dot" ? attributeField({ name: "Bias", type: "number" }, row?.bias) : null;
  const attributes = (model.attributes ?? []).map((one) =>
    attributeField(one, row?.attributes?.[one.name]),
  );
  const place = make("div", { role: "alert" });
  const save = make("button", { type: "submit", class: "go" }, row === null ? "Add" : "Save");

  /** The row as it is typed; null if something is wrong, which is shown. */
  function typed() {
    let first = null;
    const read = (part) => {
      try {
        return part.read();
      } catch (error) {
        part.show(`${error.message}.`);
        first ??= part.input;
        return undefined;
      }
    };
    if (row === null && key.input.value === "") {
      key.show("Type a key.");
      first = key.input;
    }
    const numbers = read(vector);
    const values = attributes
      .map((part) => [part.name, read(part)])
      .filter(([, value]) => value !== undefined && value !== null);
    const whole = {
      key: row?.key ?? key.input.value,
      vector: numbers,
      ...(bias && { bias: read(bias) }),
      attributes: Object.fromEntries(values),
    };
    first?.focus();
    return first === null ? whole : null;
  }

  /** Shows what the service says about the row beside what it is about. */
  function refused(reason) {
    const [, name] = /attribute `(.*?)`/.exec(reason) ?? [];
    const part =
      attributes.find((one) => one.name === name) ??
      (/bias/.test(reason) ? bias : /vector/.test(reason) ? vector : row === null ? key : null);
    if (!part) return false;
    part.show(`${reason}.`);
    part.input.focus();
    return true;
  }

  async function send() {
    place.replaceChildren();
    const one = typed();
    if (one === null || save.disabled) return;
    save.disabled = true;
    try {
      const { answer } = await ask("rows", { body: { rows: [one] }, model: question.model });
      drafts.delete(about);
      saved(answer, one.key);
    } catch (error) {
      const reason = error.document?.rows?.[0]?.reason;
      if (!reason || !refused(reason)) failure(error, place, send);
    } finally {
      save.disabled = false;
    }
  }

  const cancel = () => {
    drafts.delete(about);
    left();
  };
  const onsubmit = (event) => {
    event.preventDefault();
    send();
  };
  const unsaved = make("span", { class: "note", hidden: true }, "Not saved yet.");
  const form = make(
    "form",
    { class: "row", onsubmit, novalidate: true },
    row === null ? key.box : null,
    vector.box,
    attributes.map(({ box }) => box),
    bias?.box,
    make(
      "p",
      { class: "tools" },
      save,
      make("button", { type: "button", onclick: cancel }, "Cancel"),
      unsaved,
    ),
  );
  const whole = make("div", {}, form, place);
  form.addEventListener("input", () => {
    unsaved.hidden = false;
    drafts.set(about, whole);
  });
  return whole;
}
