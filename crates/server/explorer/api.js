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
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url;
}

/**
 * Sends a request, and returns the answer with its timings.
 * POST with a body, GET without.
 * @returns {Promise<{answer: object, timings: object, curl: string}>} timings in milliseconds
 */
export async function ask(route, { parameters, body, model = null, signal } = {}) {
  const url = address(route, parameters, model);
  const headers = { Accept: "application/json" };
  if (apiKey.get()) headers.Authorization = `Bearer ${apiKey.get()}`;
  if (body) headers["Content-Type"] = "application/json";
  const options = { headers, signal, method: body ? "POST" : "GET", body: body && JSON.stringify(body) };
  const began = performance.now();
  let response;
  let answer;
  try {
    response = await fetch(url, options);
    answer = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Unreachable("the service is not responding", { cause: error });
  }
  const roundTrip = performance.now() - began;
  if (!response.ok) throw new Problem(response, answer);
  const timings = { ...stages(response.headers.get("Server-Timing")), roundTrip };
  return { answer, timings, curl: curl(url, body) };
}

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
  return `curl${key} -H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))} \\\n  ${quoted(url.href)}`;
}
