/** The form: the query as typed, and the options. */

import { KINDS, read, write } from "./address.js";
import { byId } from "./dom.js";
import { KIND_OF_HEAD, chosenHead, loadHeads } from "./heads.js";
import { isDefault, showModel } from "./model.js";
import { suggest } from "./suggest.js";

/** The query on the screen, including the example of the start page. */
let shown = null;
/** Runs the query of the current address again. */
let showAgain = () => {};

const tabs = () => [...document.querySelectorAll("[role=tab]")];

/** Remembers the query on the screen. */
export function setShown(question) {
  shown = question;
}

/** Fills the form from a query. */
export function fillIn(question) {
  choose(question.kind === null || question.kind === "text" ? "word" : question.kind);
  for (const field of KINDS[question.kind] ?? []) byId(field === "text" ? "word" : field).value = question[field];
  if (question.kind === null) byId("word").value = "";
  const counts = [...byId("k").options].map((option) => Number(option.value));
  if (!counts.includes(question.k)) {
    byId("k").add(new Option(question.k), counts.filter((count) => count < question.k).length);
  }
  byId("k").value = question.k;
  showModel(question);
  byId("fold").checked = question.fold;
}

/** Shows the fields of this kind of query. */
function choose(kind) {
  for (const tab of tabs()) {
    const isChosen = tab.dataset.kind === kind;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
  }
  for (const part of document.querySelectorAll("[data-for]")) part.hidden = !part.dataset.for.split(" ").includes(kind);
  const tab = byId(`tab-${kind}`);
  document.querySelector(".go").textContent = kind in KIND_OF_HEAD ? tab.textContent : "Find";
  byId("question").setAttribute("aria-labelledby", tab.id);
  byId("search").dataset.kind = kind;
}

/** Shows the fields of a tab that a user chose. */
function chooseTab(kind) {
  choose(kind);
  // The query itself will report any error.
  if (kind in KIND_OF_HEAD) loadHeads({ kind, ...options() }, chosenHead(kind)).catch(() => {});
}

/** The first field of the current kind of query. */
export const firstField = () => byId(byId("search").dataset.kind);

function options() {
  const model = byId("model").value;
  return {
    k: Number(byId("k").value),
    limit: Number(byId("limit").value) || null,
    fold: byId("fold").checked,
    model: model && !isDefault(model) ? model : null,
  };
}

/** `question`: the query in the form; or `missing`: the empty field. */
function asked() {
  const kind = byId("search").dataset.kind;
  const question = { kind, ...options() };
  for (const field of KINDS[kind]) {
    // Words are looked up by exact bytes, but hardly any start or end with a space.
    question[field] = byId(field).value.trim();
    if (question[field] === "") return { missing: byId(field) };
  }
  if (kind in KIND_OF_HEAD) Object.assign(question, { head: chosenHead(kind), label: null });
  // A text is shown in the word's field, and stays a text until it is changed.
  const isText = kind === "word" && shown?.kind === "text" && shown.text.trim() === question.word;
  return { question: isText ? { ...question, kind: "text", text: question.word } : question };
}

function go(question) {
  const address = write(question);
  if (address === location.hash) showAgain();
  else location.hash = address;
}

function submit(event) {
  event?.preventDefault();
  const { question, missing } = asked();
  if (missing) missing.focus();
  else go(question);
}

/** A changed option runs the query again: the one in the form, or otherwise the one on the screen. */
function changed(event) {
  const { question } = asked();
  const isHead = event.target.id === "head";
  if (isHead && !question) return;
  const isModel = event.target.id === "model";
  // Another model has its own start page and its own heads.
  const isStart = read().kind === null && isModel;
  const next = question ?? { ...(isStart ? { kind: null } : (shown ?? { kind: null })), ...options() };
  go(isModel ? { ...next, head: null, label: null } : next);
}

function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const all = tabs();
  const next = all[(all.indexOf(event.target) + step + all.length) % all.length];
  chooseTab(next.dataset.kind);
  next.focus();
}

/** Starts listening; `again` runs the query of the address again. */
export function watchForm(again) {
  showAgain = again;
  const model = () => options().model;
  for (const field of ["word", "compare", "with"]) suggest(byId(field), { model, chosen: submit });
  suggest(byId("analogy"), { model, expression: true });
  byId("search").addEventListener("submit", submit);
  for (const kind of Object.keys(KIND_OF_HEAD)) {
    byId(kind).addEventListener("keydown", (event) => {
      // Input methods take Enter to choose a character.
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    });
  }
  for (const option of ["k", "limit", "fold", "model", "head"]) byId(option).addEventListener("change", changed);
  for (const tab of tabs()) {
    tab.addEventListener("click", () => {
      chooseTab(tab.dataset.kind);
      firstField().focus();
    });
    tab.addEventListener("keydown", onTabKey);
  }
}
