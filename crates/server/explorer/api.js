/** Requests to the service that this page came from, behind any proxy prefix. */

/** The folder of this page: all routes are below it. */
const base = new URL(".", document.baseURI);

/** An error from the service: a problem document (RFC 9457). */
export class Problem extends Error {
  constructor(response, document) {
    super(document.detail ?? response.statusText);
    this.status = response.status;
    this.document = document;
    this.retryAfterSeconds = Number(response.headers.get("Retry-After")) || 1;
  }
}

/** No answer, or one that is not from the service. */
export class Unreachable extends Error {}

/** The API key is kept until the page is closed, in this tab only. */
export const apiKey = {
  get: () => sessionStorage.getItem("kindred-api-key"),
  set: (key) => sessionStorage.setItem("kindred-api-key", key),
};

/** The address of a route of this model, or of the default model. */
export function address(route, parameters = {}, model = null) {
  const path = model === null ? route : `models/${encodeURIComponent(model)}/${route}`;
  const url = new URL(path, base);
  for (const [name, values] of Object.entries(parameters)) {
    for (const value of [values].flat()) url.searchParams.append(name, value);
  }
  return url;
}

/** The last answers that have an entity tag, by their addresses: the oldest first. */
const known = new Map();
const MOST_KNOWN = 64;

function remember(href, tag, answer) {
  known.delete(href);
  if (tag) known.set(href, { tag, answer });
  if (known.size > MOST_KNOWN) known.delete(known.keys().next().value);
}

/**
 * Sends a request, and returns the answer with its timings.
 * POST with a body, GET without, unless the method is given.
 * @returns {Promise<{answer: object, timings: object, curl: string}>} timings in milliseconds, and whether the service
 *   confirmed an answer that the page had already (304)
 */
export async function ask(route, { parameters, body, method = body ? "POST" : "GET", model = null, signal } = {}) {
  const url = address(route, parameters, model);
  const headers = { Accept: "application/json" };
  if (apiKey.get()) headers.Authorization = `Bearer ${apiKey.get()}`;
  if (body) headers["Content-Type"] = "application/json";
  // Named here and not by the browser, which would hide that the answer is the same.
  const before = method === "GET" ? known.get(url.href) : undefined;
  if (before) headers["If-None-Match"] = before.tag;
  const options = { headers, signal, method, body: body && JSON.stringify(body, asWritten) };
  const began = performance.now();
  let response;
  let answer;
  let isUnchanged;
  try {
    response = await fetch(url, options);
    isUnchanged = response.status === 304 && before !== undefined;
    answer = isUnchanged ? before.answer : JSON.parse(await response.text(), exactly);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the service is not responding", { cause: error });
  }
  const roundTrip = performance.now() - began;
  if (!response.ok && !isUnchanged) throw new Problem(response, answer);
  if (method === "GET") remember(url.href, response.headers.get("ETag"), answer);
  const timings = { ...stages(response.headers.get("Server-Timing")), roundTrip, isUnchanged };
  return { answer, timings, curl: curl(url, body) };
}

/** Integers that a number would round, where the browser tells how they were written. */
function exactly(_, value, written) {
  const isRounded = typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(written?.source);
  return isRounded ? BigInt(written.source) : value;
}

const asWritten = (_, value) => (typeof value === "bigint" ? JSON.rawJSON(String(value)) : value);

/** Milliseconds by stage from `queue;dur=0.1, engine;desc="cpu";dur=4, total;dur=4.4`. */
function stages(header) {
  const found = {};
  for (const [, name, rest] of (header ?? "").matchAll(/([\w-]+)((?:;\w+=(?:"[^"]*"|[^;,]*))*)/g)) {
    const duration = /;dur=([\d.]+)/.exec(rest);
    if (duration) found[name] = Number(duration[1]);
  }
  return found;
}

/** The same request as a shell command. */
function curl(url, body) {
  const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const key = apiKey.get() ? ` -H "Authorization: Bearer $KINDRED_API_KEY"` : "";
  if (!body) return `curl${key} ${quoted(url.href)}`;
  return `curl${key} -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body, asWritten))} \\\n  ${quoted(url.href)}`;
}
