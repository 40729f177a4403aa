/** The form: the query as typed, and the options. */

import { KINDS, TEXTS, read, tabOf, write } from "./address.js";
import { byId } from "./dom.js";
import { showFilter, watchFilter } from "./filter.js";
import { KIND_OF_HEAD, chosenHead, loadHeads } from "./heads.js";
import { isDefault, showModel } from "./model.js";
import { FEWEST_WORDS } from "./odd_one_out.js";
import { suggest } from "./suggest.js";
import { wordsIn } from "./words.js";

/** The message about a field without a query. */
const MISSING = {
  word: "Type a word first, for example ocean.",
  analogy: "Type an expression first, for example king - man + woman.",
  compare: "Type the first word, for example coffee.",
  with: "Type the second word, for example tea.",
  odd: "Type three words or more, for example breakfast cereal dinner lunch.",
  documents: "Type a text first, for example a warm drink for a cold day.",
  classify: "Type a text first, for example a moving and funny film.",
  expand: "Type a text first, for example cheap flights to the coast.",
};

/** The query on the screen, including the example of the start page. */
let shown = null;
/** The last query of each tab, by the tab's name. */
const kept = new Map();
/** Whether the address changes because of a tab: then what is typed there stays. */
let isTabChange = false;
/** Runs the query of the current address again. */
let showAgain = () => {};
/** Takes the answer of the tab away that is left. */
let clearAnswer = () => {};

const tabs = () => [...document.querySelectorAll("[role=tab]")];

/** Remembers the query on the screen. */
export function setShown(question) {
  shown = question;
  if (question.kind !== null) kept.set(tabOf(question.kind), { ...question });
}

/** Fills the form from a query. */
export function fillIn(question) {
  const tab = question.kind === null ? (question.tab ?? "word") : tabOf(question.kind);
  choose(tab);
  for (const field of KINDS[question.kind] ?? []) byId(tabOf(field)).value = question[field];
  if (question.kind === null && question.tab === null && !isTabChange) byId("word").value = "";
  isTabChange = false;
  if (tab === "word") byId("as-text").checked = question.kind === "text";
  if (question.kind === "analogy") byId("method").value = question.method ?? "";
  byId("exclude").value = question.exclude ?? "";
  const counts = [...byId("k").options].map((option) => Number(option.value));
  if (!counts.includes(question.k)) {
    byId("k").add(new Option(question.k), counts.filter((count) => count < question.k).length);
  }
  byId("k").value = question.k;
  showModel(question);
  showFilter(question);
  byId("fold").checked = question.fold;
  // The query itself will report any error.
  if (question.kind === null && tab in KIND_OF_HEAD) loadHeads({ ...question, kind: tab }, chosenHead(tab)).catch(() => {});
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
  clearMissing();
}

/** Goes to a tab: to its last query and answer if it has one, with the options as they are now. */
function chooseTab(kind) {
  if (kind === openTab()) return;
  choose(kind);
  clearAnswer();
  isTabChange = true;
  const now = options();
  const empty = kind === "rows" ? { kind, rows: "" } : { kind: null, tab: kind === "word" ? null : kind };
  const last = kept.get(kind) ?? empty;
  // Another model has other heads.
  const ofModel = last.model === now.model ? {} : { head: null, label: null, rows: "" };
  // Pages are those of a filter and of their length.
  Object.assign(ofModel, { after: null });
  // Nobody wants to go back to a tab without a query.
  go({ ...last, ...now, ...ofModel }, read().tab !== null);
}

const openTab = () => byId("search").dataset.kind;

/** The first field of the current kind of query. */
export const firstField = () => byId(openTab());

/** Says which field is empty, or has too few words. */
function showMissing(field) {
  byId("missing").textContent = MISSING[field.id];
  field.setAttribute("aria-invalid", "true");
  field.focus();
}

function clearMissing() {
  byId("missing").textContent = "";
  for (const field of document.querySelectorAll("#search [aria-invalid]")) field.removeAttribute("aria-invalid");
}

function options() {
  const model = byId("model").value;
  return {
    k: Number(byId("k").value),
    limit: Number(byId("limit").value) || null,
    fold: byId("fold").checked,
    exclude: byId("exclude").value.trim() || null,
    filter: byId("filter").value.trim() || null,
    model: model && !isDefault(model) ? model : null,
  };
}

/** `question`: the query in the form; or `missing`: the empty field. */
function asked() {
  const kind = openTab();
  const question = { kind, ...options() };
  for (const field of KINDS[kind]) {
    // Words are looked up by exact bytes, but hardly any start or end with a space.
    question[field] = byId(field).value.trim();
    const isShort = field === "odd" && wordsIn(question.odd).length < FEWEST_WORDS;
    if ((question[field] === "" && field !== "rows") || isShort) return { missing: byId(field) };
  }
  if (kind in KIND_OF_HEAD) Object.assign(question, { head: chosenHead(kind), label: null });
  if (kind === "analogy") question.method = byId("method").value || null;
  const isText = kind === "word" && byId("as-text").checked;
  return { question: isText ? { ...question, kind: "text", text: question.word } : question };
}

/** Goes to a query; asks again if it is there. `isReplaced`: in place of the current one, which nobody can go back to then. */
export function go(question, isReplaced = false) {
  const address = write(question);
  if (address === location.hash) showAgain();
  else if (isReplaced) location.replace(address);
  else location.hash = address;
}

function submit(event) {
  event?.preventDefault();
  const { question, missing } = asked();
  clearMissing();
  if (missing) showMissing(missing);
  else go(question);
}

/** A changed option runs the query again: the one in the form, or otherwise the one on the screen. */
function changed(event) {
  const { question } = asked();
  // These are about the query in the form.
  if (["head", "method", "as-text"].includes(event.target.id) && !question) return;
  const isModel = event.target.id === "model";
  // Another model has its own start page, attributes and heads; a tab without a query keeps none.
  const address = read();
  const isEmpty = address.kind === null && (isModel || address.tab !== null);
  const next = question ?? { ...(isEmpty ? address : (shown ?? address)), ...options() };
  const whole = isModel ? { ...next, filter: null, head: null, label: null, rows: "" } : next;
  // Filter and number are about all rows.
  if (whole.kind === "rows") Object.assign(whole, { rows: "", after: null, add: null });
  // Enter in the field has asked already.
  if (!["exclude", "filter"].includes(event.target.id) || write(whole) !== write(address)) go(whole);
}

function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const all = tabs();
  const next = all[(all.indexOf(event.target) + step + all.length) % all.length];
  chooseTab(next.dataset.kind);
  next.focus();
}

/** Starts listening; `again` runs the query of the address again, `clear` takes the answer away. */
export function watchForm(again, clear) {
  showAgain = again;
  clearAnswer = clear;
  const model = () => options().model;
  for (const field of ["word", "compare", "with", "rows"]) suggest(byId(field), { model, chosen: submit });
  suggest(byId("analogy"), { model, expression: true });
  watchFilter({ model, changed: () => changed({ target: byId("filter") }) });
  byId("search").addEventListener("submit", submit);
  byId("search").addEventListener("input", clearMissing);
  byId("exclude").addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    changed(event);
  });
  for (const kind of TEXTS) {
    byId(kind).addEventListener("keydown", (event) => {
      // Input methods take Enter to choose a character.
      if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    });
  }
  for (const option of ["k", "limit", "fold", "exclude", "as-text", "method", "model", "head"]) byId(option).addEventListener("change", changed);
  for (const tab of tabs()) {
    tab.addEventListener("click", () => {
      chooseTab(tab.dataset.kind);
      firstField().focus();
    });
    tab.addEventListener("keydown", onTabKey);
  }
}
