/** A search frontend: asks Kindred for the documents that are nearest to a text. */

const PAGE = new URLSearchParams(location.search);
const SERVICE = PAGE.get("service") ?? "http://127.0.0.1:8080";
const SNIPPET = 160;

const byId = (id) => document.getElementById(id);

/** An element with a text, which is never read as HTML. */
function make(name, ...content) {
  const element = document.createElement(name);
  element.append(...content);
  return element;
}

/** A request to Kindred: POST with a body, GET without. An error says what to tell the user. */
async function ask(route, body) {
  const headers = { "Content-Type": "application/json" };
  const options = body ? { method: "POST", headers, body: JSON.stringify(body) } : {};
  let [response, answer] = [];
  try {
    response = await fetch(`${SERVICE}/${route}`, options);
    answer = await response.json();
  } catch {
    throw new Error(`The search at ${SERVICE} does not respond. Please try again later.`);
  }
  if (response.ok) return answer;
  if (answer.code !== "unknown_word") throw new Error(`The search failed: ${answer.detail}.`);
  const words = answer.unknown.map(({ word }) => word).join(", ");
  throw new Error(`No document can be found by these words: ${words}.`);
}

/** The beginning of a text, cut at a space. */
function snippet(text) {
  if (text.length <= SNIPPET) return text;
  return `${text.slice(0, text.lastIndexOf(" ", SNIPPET))} …`;
}

/** A document with its attributes: those of docs.jsonl, and the text, because of --keep-text. */
function line({ score, attributes: { title, category, year, text } }) {
  const about = [category, year].filter((value) => value !== null).join(", ");
  const heading = make("h2", `${title} `, make("small", `${score.toFixed(3)} · ${about}`));
  return make("li", heading, make("p", snippet(text)));
}

/** Counts searches: an answer that comes after a later one's changes nothing. */
let last = 0;

async function search() {
  const own = ++last;
  const text = byId("text").value.trim();
  const category = byId("category").value;
  // JSON writes a text as filters do: in double quotes.
  const filter = category && `category = ${JSON.stringify(category)}`;
  const body = { text, k: 10, with_attributes: true, ...(filter && { filter }) };
  let [message, found] = ["", []];
  try {
    const answer = await ask("nearest", body);
    found = answer.neighbors;
    if (found.length === 0) message = "Nothing was found.";
    const { skipped = [] } = answer;
    if (skipped.length > 0) message = `Not known, and left out: ${skipped.join(", ")}.`;
  } catch (error) {
    message = error.message;
  }
  if (own !== last) return;
  byId("message").textContent = message;
  byId("found").replaceChildren(...found.map(line));
}

/** The model knows its categories: the frequent values of the attribute. */
async function showCategories() {
  const { attributes } = await ask("model");
  const { frequent } = attributes.find(({ name }) => name === "category");
  byId("category").append(...frequent.map(({ value }) => new Option(value)));
}

byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  search();
});
byId("category").addEventListener("change", () => byId("text").value.trim() && search());
showCategories().catch((error) => (byId("message").textContent = error.message));
