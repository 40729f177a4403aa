/** A server that answers as a test says, and remembers what it was asked. */

import { createServer } from "node:http";
import { once } from "node:events";
import { after } from "node:test";

/** A problem document as Kindred sends it. */
export const problem = (status, code, more = {}) => ({
  type: `urn:kindred:problem:${code}`,
  title: code,
  status,
  detail: `told by ${code}`,
  code,
  ...more,
});

/** An answer: `body` is sent as JSON unless it is a string. */
export function reply(response, status, body, headers = {}) {
  const isText = typeof body === "string";
  response.writeHead(status, { "Content-Type": isText ? "text/html" : "application/json", ...headers });
  response.end(isText ? body : JSON.stringify(body));
}

/** A search's answer. */
export const FOUND = { model: "demo", version: "7fbc8351f31644a7", neighbors: [{ word: "toad", score: 0.5, row: 1 }] };

/**
 * @param {function} answer `(response, request, count)`: `count` is 1 for the first request
 * @returns {Promise<{url, requests, gone}>} `requests`: method, url, headers and text of each; `gone`: how many clients
 *   hung up before they were answered
 */
export async function fake(answer) {
  const state = { url: "", requests: [], gone: 0 };
  const server = createServer(async (request, response) => {
    const { method, url, headers } = request;
    response.on("close", () => response.writableFinished || (state.gone += 1));
    let text = "";
    for await (const part of request) text += part;
    state.requests.push({ method, url, headers, text, at: performance.now() });
    await answer(response, request, state.requests.length);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => (server.closeAllConnections(), server.close()));
  state.url = `http://127.0.0.1:${server.address().port}`;
  return state;
}

/** What a call rejects with. */
export const rejection = (promise) =>
  promise.then(
    (answer) => {
      throw new Error(`it was answered: ${JSON.stringify(answer)}`);
    },
    (error) => error,
  );
