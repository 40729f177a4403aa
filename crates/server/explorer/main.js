/** The page: the address says what is asked, and everything follows from it. */

import * as analogy from "./analogy.js";
import { Unreachable } from "./api.js";
import { KINDS, read, write } from "./address.js";
import * as compare from "./compare.js";
import { byId } from "./dom.js";
import { showExamples } from "./examples.js";
import * as heatMap from "./heat_map.js";
import { watchHighlights } from "./highlight.js";
import * as map from "./map.js";
import { isDefault, isShown, loadModels, showModel } from "./model.js";
import * as neighbours from "./neighbours.js";
import { clearNotice, showNotice } from "./notice.js";
import { MOST_WORDS, similarities, withCenter } from "./similarities.js";
import { suggest } from "./suggest.js";
import { showTimings } from "./timings.js";

const views = { word: neighbours, text: neighbours, analogy, compare };
/** The question on the screen, and what ends it when another one comes. */
let shown = read();
let running = new AbortController();

/** Asks what the address says, and shows it. */
async function show() {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  const question = read();
  shown = question;
  fillIn(question);
  document.body.classList.toggle("asked", question.kind !== null);
  document.body.classList.add("busy");
  try {
    if (byId("facts").children.length === 0) await loadModels(question);
    if (byId("examples").hidden || question.kind === null) {
      const example = await showExamples(question);
      if (question.kind === null) Object.assign(question, example);
    }
    if (question.kind === null || signal.aborted) return;
    const found = await views[question.kind].find(question, signal);
    present(found, question);
    if (!isShown(found.answer)) await loadModels(question);
    await picture(found, question, signal);
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof Unreachable)) byId("found").hidden = byId("curl-card").hidden = true;
    byId("status").textContent = "";
    const held = focusWithin();
    showNotice(error, question, show);
    if (held !== null && !focusWithin()?.checkVisibility()) byId("notice").focus({ preventScroll: true });
  } finally {
    document.body.classList.add("begun");
    if (!signal.aborted) document.body.classList.remove("busy");
  }
}

/** What has the focus and goes with its answer: a link in the list, a point of the map, a word of a notice. */
const focusWithin = () => document.activeElement?.closest("#answer *, #map *, #notice, #notice *") ?? null;

/** The answer itself. */
function present(found, question) {
  const held = focusWithin();
  clearNotice();
  byId("found").hidden = byId("curl-card").hidden = false;
  byId("answer-title").textContent = found.title;
  byId("answer").replaceChildren(...found.content.filter((part) => part !== null));
  byId("status").textContent = found.status;
  byId("curl").textContent = found.curl;
  document.title = `${found.title.replace(/^Nearest to /, "")} · Kindred`;
  document.body.dataset.kind = question.kind;
  showTimings(found.timings);
  // Whoever walks with the keyboard goes on where the new answer begins; a map that fingers walk on stays in sight.
  if (held !== null) byId("answer-title").focus({ preventScroll: held.closest("#map") !== null });
}

/** The map and the grid of all similarities. */
async function picture({ center, asked, hits }, question, signal) {
  const words = [...new Set([...asked, ...hits])].slice(0, MOST_WORDS);
  const matrix = await similarities(words, { model: question.model, signal });
  const isCenter = center !== null;
  const points = {
    names: isCenter ? [center.label, ...words] : words,
    matrix: isCenter ? withCenter(matrix, center.scores) : matrix,
    asked: asked.length + (isCenter ? 1 : 0),
    isCenter,
    question,
  };
  map.drawMap(points);
  heatMap.drawHeatMap(points);
  byId("heat-legend").textContent =
    "The exact cosine similarity of each pair" + (hits.length + asked.length > MOST_WORDS ? `, of the first ${MOST_WORDS} words.` : ".");
}

/** The form as the question has it. */
function fillIn(question) {
  const kind = question.kind === null || question.kind === "text" ? "word" : question.kind;
  choose(kind);
  for (const field of KINDS[question.kind] ?? []) byId(field === "text" ? "word" : field).value = question[field];
  if (question.kind === null) byId("word").value = "";
  const counts = [...byId("k").options].map((option) => Number(option.value));
  if (!counts.includes(question.k)) byId("k").add(new Option(question.k));
  byId("k").value = question.k;
  showModel(question);
  byId("fold").checked = question.fold;
}

/** Shows the fields of this kind of question. */
function choose(kind) {
  for (const tab of document.querySelectorAll("[role=tab]")) {
    const isChosen = tab.dataset.kind === kind;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.tabIndex = isChosen ? 0 : -1;
  }
  for (const fields of document.querySelectorAll(".fields")) fields.hidden = fields.dataset.for !== kind;
  byId("question").setAttribute("aria-labelledby", `tab-${kind}`);
  byId("search").dataset.kind = kind;
}

/** The question that the form holds; null if a field of it is empty. */
function asked() {
  const kind = byId("search").dataset.kind;
  const model = byId("model").value;
  const question = {
    kind,
    k: Number(byId("k").value),
    limit: Number(byId("limit").value) || null,
    fold: byId("fold").checked,
    model: model && !isDefault(model) ? model : null,
  };
  for (const field of KINDS[kind]) {
    const input = byId(field);
    // Words are looked up by their exact bytes, but hardly any begin or end with a space.
    question[field] = input.value.trim();
    if (question[field] === "") return { missing: input };
  }
  return { question };
}

function submit(event) {
  event?.preventDefault();
  const { question, missing } = asked();
  if (missing) return missing.focus();
  const address = write(question);
  if (address === location.hash) show();
  else location.hash = address;
}

/** A changed option asks again, where something is asked. */
function changed() {
  const { question } = asked();
  if (question) return submit();
  const model = byId("model").value;
  location.hash = write({ ...read(), kind: null, model: isDefault(model) ? null : model });
}

function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...document.querySelectorAll("[role=tab]")];
  const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  choose(next.dataset.kind);
  next.focus();
}

async function copyCurl() {
  const button = byId("copy-curl");
  const text = byId("curl").textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // Pages without HTTPS may not write there: the text is selected, to be copied by hand.
    getSelection().selectAllChildren(byId("curl"));
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => (button.textContent = "Copy as curl"), 2000);
}

for (const field of ["word", "compare", "with"]) suggest(byId(field), { model: () => shown.model, chosen: submit });
suggest(byId("analogy"), { model: () => shown.model, expression: true });

byId("search").addEventListener("submit", submit);
for (const option of ["k", "limit", "fold", "model"]) byId(option).addEventListener("change", changed);
for (const tab of document.querySelectorAll("[role=tab]")) {
  tab.addEventListener("click", () => {
    choose(tab.dataset.kind);
    byId(tab.dataset.kind).focus();
  });
  tab.addEventListener("keydown", onTabKey);
}
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId(byId("search").dataset.kind).focus();
});
byId("copy-curl").addEventListener("click", copyCurl);
byId("zoom-in").addEventListener("click", () => map.zoomBy(1.5));
byId("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.5));
byId("zoom-reset").addEventListener("click", () => map.zoomBy(0));
addEventListener("keydown", (event) => {
  const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  byId(byId("search").dataset.kind).select();
});
new ResizeObserver(() => {
  map.fit();
  heatMap.fit();
}).observe(byId("found"));
watchHighlights();
addEventListener("hashchange", show);
show();
