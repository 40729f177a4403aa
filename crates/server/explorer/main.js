/** The page. Its state is the address. */

import * as analogy from "./analogy.js";
import { Unreachable } from "./api.js";
import { read } from "./address.js";
import * as classify from "./classify.js";
import * as compare from "./compare.js";
import { byId, make } from "./dom.js";
import { showExamples } from "./examples.js";
import * as expand from "./expand.js";
import { showFilter, showPassing } from "./filter.js";
import { fillIn, firstField, setShown, watchForm } from "./form.js";
import * as heatMap from "./heat_map.js";
import { watchHighlights } from "./highlight.js";
import * as map from "./map.js";
import { described, isEmpty, isKnown, loadModels } from "./model.js";
import * as neighbours from "./neighbours.js";
import { clearNotice, showNotice, stopRetrying } from "./notice.js";
import * as oddOneOut from "./odd_one_out.js";
import { savePicture, saveTable } from "./save.js";
import { MOST_WORDS, similarities, withCenter } from "./similarities.js";
import { showTimings } from "./timings.js";

/** Loaded when they are needed. */
async function load(file) {
  try {
    return await import(file);
  } catch (cause) {
    throw new Unreachable("the service is not responding", { cause });
  }
}
const later = (file) => ({ find: async (...question) => (await load(file)).find(...question) });
const views = {
  word: neighbours, text: neighbours, analogy, compare, odd: oddOneOut, documents: later("./documents.js"), classify, expand, rows: later("./rows.js"),
};
/** Aborts the current query when another one starts. */
let running = new AbortController();
/** The answer on the screen. */
let shown = null;
/** Whether it is the one that was asked for last. */
let isAnswered = false;
/** Runs when the user has waited for some time. */
let patience = null;

/** A shorter wait needs no words. */
const PATIENCE_MS = 300;

/** Says that an answer is on its way, once that takes long enough to be noticed. */
function startWaiting() {
  endWaiting();
  isAnswered = false;
  document.body.classList.add("busy");
  patience = setTimeout(() => {
    document.body.classList.add("waiting");
    // An answer that is there without its pictures says more.
    if (!isAnswered) byId("status").textContent = "Waiting for the answer …";
    byId("found").setAttribute("aria-busy", "true");
  }, PATIENCE_MS);
}

function endWaiting() {
  clearTimeout(patience);
  document.body.classList.remove("busy", "waiting");
  byId("found").removeAttribute("aria-busy");
}

/**
 * Runs the query of the address and shows the answer.
 * @param {boolean} isRetry whether this is a retry: then the form is left alone, because the user may be typing
 */
async function show(isRetry = false) {
  running.abort();
  running = new AbortController();
  const { signal } = running;
  stopRetrying();
  const question = read();
  setShown(question);
  if (!isRetry) fillIn(question);
  const isStart = question.kind === null && question.tab === null;
  document.body.classList.toggle("asked", !isStart);
  startWaiting();
  if (question.tab !== null) showNothing();
  try {
    if (byId("facts").children.length === 0) {
      await loadModels(question, signal);
      showFilter(question);
    }
    if (isEmpty()) return present(await (await load("./tables.js")).noTables(question), { kind: "rows" }, false);
    // The answer is valid without examples.
    const example = await showExamples(question, signal).catch((error) => {
      if (isStart || signal.aborted) throw error;
    });
    const hasRows = described(question.model)?.rows !== 0;
    if (isStart) Object.assign(question, hasRows ? example : { kind: "rows", rows: "" });
    if (question.kind === null) return showNothing();
    const found = await views[question.kind].find(question, signal);
    signal.throwIfAborted();
    present(found, question, isStart && hasRows);
    if (found.answer && !isKnown(found.answer)) await loadModels(question, signal);
    // The answer is valid without the number.
    await showPassing(question, signal).catch((error) => {
      if (signal.aborted) throw error;
    });
    if (found.hits) await picture(found, question, signal);
  } catch (error) {
    if (signal.aborted) return;
    if (!(error instanceof Unreachable)) {
      byId("found").hidden = byId("curl-card").hidden = true;
      document.title = "Kindred";
    }
    byId("status").textContent = "";
    const held = focusWithin();
    showNotice(error, question, () => show(true));
    if (held !== null && !focusWithin()?.checkVisibility()) byId("notice").focus({ preventScroll: true });
  } finally {
    document.body.classList.add("begun");
    if (!signal.aborted) endWaiting();
  }
}

/** A tab without a query has no answer, and none of another tab's. */
function showNothing() {
  clearNotice();
  byId("found").hidden = byId("curl-card").hidden = true;
  byId("status").textContent = "";
  document.title = "Kindred";
}

/** The focused element, if it disappears with its answer: a link in the list, a point on the map, a word of a notice. */
const focusWithin = () => document.activeElement?.closest("#answer *, #map *, #notice, #notice *") ?? null;

/** Shows the answer; map and matrix follow with their own data. */
function present(found, question, isExample) {
  const held = focusWithin();
  shown = found;
  isAnswered = true;
  clearNotice();
  byId("found").hidden = false;
  byId("curl-card").hidden = !found.curl;
  byId("save-table").hidden = !found.table;
  byId("answer-title").textContent = isExample ? `For example: ${found.title}` : found.title;
  byId("answer").replaceChildren(...found.content.flat(Infinity).filter((part) => part !== null));
  byId("status").textContent = found.status;
  byId("curl").textContent = found.curl ?? "";
  document.title = `${found.title.replace(/^Nearest to /, "")} · Kindred`;
  document.body.dataset.kind = question.kind;
  document.body.classList.toggle("drawing", found.hits !== undefined);
  if (found.timings) showTimings(found.timings);
  // Keyboard users continue at the start of the new answer; a map used by touch stays in view.
  if (held !== null) byId("answer-title").focus({ preventScroll: held.closest("#map") !== null });
}

/** Shows the map and the similarity matrix. */
async function picture({ center, asked, hits }, question, signal) {
  const all = [...new Set([...asked, ...hits])];
  const words = all.slice(0, MOST_WORDS);
  let matrix;
  try {
    matrix = await similarities(words, { model: question.model, signal });
  } catch (error) {
    if (error instanceof Unreachable || signal.aborted) throw error;
    // The answer is valid without map and matrix.
    for (const id of ["map", "heat"]) byId(id).replaceChildren(make("p", { class: "note" }, `Can't draw this: ${error.message}.`));
    for (const id of ["map-legend", "heat-legend"]) byId(id).textContent = "";
    document.body.classList.remove("drawing");
    return;
  }
  signal.throwIfAborted();
  const isCenter = center !== null;
  const points = {
    names: isCenter ? [center.label, ...words] : words,
    matrix: isCenter ? withCenter(matrix, center.scores) : matrix,
    asked: new Set(asked).size + (isCenter ? 1 : 0),
    isCenter,
    question,
  };
  const part = all.length > MOST_WORDS ? ` Only the first ${MOST_WORDS} of ${all.length} words are shown.` : "";
  map.drawMap(points, part);
  heatMap.drawHeatMap(points);
  byId("heat-legend").textContent = `Exact cosine similarity of each pair. The columns are in the order of the rows.${part}`;
  document.body.classList.remove("drawing");
}

async function copyCurl() {
  const button = byId("copy-curl");
  const text = byId("curl").textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // Pages without HTTPS can't write to the clipboard; select the text for copying by hand.
    getSelection().selectAllChildren(byId("curl"));
    button.textContent = "Selected: press Ctrl+C";
  }
  setTimeout(() => (button.textContent = "Copy as curl"), 2000);
}

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  firstField().focus();
});
byId("copy-curl").addEventListener("click", copyCurl);
byId("save-table").addEventListener("click", () => saveTable(shown.title, shown.table));
for (const id of ["map", "heat"]) {
  byId(`save-${id}`).addEventListener("click", () => {
    // The drawing of the last answer is still there, hidden, while the one of this answer is on its way.
    if (!document.body.classList.contains("drawing")) savePicture(shown.title, id);
  });
}
byId("zoom-in").addEventListener("click", () => map.zoomBy(1.5));
byId("zoom-out").addEventListener("click", () => map.zoomBy(1 / 1.5));
byId("zoom-reset").addEventListener("click", () => map.zoomBy(0));
addEventListener("keydown", (event) => {
  const isTyping = event.target.matches("input:not([type=checkbox]), select, textarea");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  byId("search").scrollIntoView({ block: "nearest" });
  firstField().focus();
  firstField().select();
});
new ResizeObserver(() => {
  map.fit();
  heatMap.fit();
}).observe(byId("found"));
watchForm(() => show(), showNothing);
watchHighlights();
addEventListener("hashchange", () => show());
show();
