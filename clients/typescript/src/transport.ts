/** Sends a request until it is answered, refused, aborted or out of time. */

import { Deadline } from "./deadline.js";
import { BusyError, ConnectionError, errorFor, readProblem, TimeoutError, UnexpectedAnswerError } from "./errors.js";
import { type CallOptions, checkCall, type Settings } from "./settings.js";

/** A request, relative to the base URL. */
export interface Request {
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON with POST. Without one, the request is a GET unless `method` says otherwise. */
  readonly body?: object;
  readonly method?: "POST";
  /** Whether the answer is JSON, or plain text. */
  readonly accepts?: "text/plain";
}

/** What came with an answer. */
export interface Metadata {
  /** The request's id, which the service's log has too. */
  readonly requestId: string;
  /** How often the request was sent. */
  readonly attempts: number;
  /** The header `Server-Timing` of searches: milliseconds in the queue, in the engine and in total. */
  readonly serverTiming: string | null;
}

/** The first back-off is up to this long, the next up to twice as long, and so on. */
const FIRST_BACK_OFF_MS = 200;
const LONGEST_BACK_OFF_MS = 5_000;

/** Of an answer that is not Kindred's, so many characters are quoted. */
const QUOTED = 120;

/**
 * @param options `timeoutMs` and `retries` instead of the settings'
 * @returns the answer's text, and what came with it
 */
export async function send(
  settings: Settings,
  request: Request,
  options: CallOptions,
): Promise<{ text: string; metadata: Metadata }> {
  checkCall(options);
  const { timeoutMs = settings.timeoutMs, retries = settings.retries, requestId = randomId(), signal } = options;
  const url = addressOf(settings.base, request);
  const what = `${methodOf(request)} ${url.origin}${url.pathname}`;

  let attempts = 0;
  let last: unknown;
  const outOfTime = () =>
    new TimeoutError(
      `${what} had no answer within ${timeoutMs} ms (sent ${attempts === 1 ? "once" : `${attempts} times`}); ` +
        "raise timeoutMs, or ask for less at once",
      { requestId, cause: last },
    );
  const deadline = new Deadline(timeoutMs, outOfTime, signal);
  try {
    for (;;) {
      deadline.signal.throwIfAborted();
      attempts += 1;
      try {
        const { text, headers } = await sendOnce(settings, request, url, what, requestId, deadline);
        const metadata = {
          requestId: headers.get("X-Request-Id") ?? requestId,
          attempts,
          serverTiming: headers.get("Server-Timing"),
        };
        return { text, metadata };
      } catch (error) {
        // Whatever failed then failed because of it.
        deadline.signal.throwIfAborted();
        last = error;
        const wait = attempts <= retries ? waitBeforeRetry(error, attempts, settings.maxRetryAfterMs) : null;
        // The error says more than a timeout that is certain to follow.
        if (wait === null || wait >= deadline.leftMs) throw error;
        await deadline.sleep(wait);
      }
    }
  } finally {
    deadline.release();
  }
}

/** Milliseconds to wait before the request is sent again; `null` if it must not be. */
function waitBeforeRetry(error: unknown, attempts: number, maxRetryAfterMs: number): number | null {
  if (!(error instanceof ConnectionError || error instanceof BusyError)) return null;
  const retryAfterMs = error instanceof BusyError ? (error.retryAfter ?? 0) * 1000 : 0;
  if (retryAfterMs > maxRetryAfterMs) return null;
  // A random part, so that clients that failed together do not come back together.
  return retryAfterMs + Math.random() * Math.min(LONGEST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (attempts - 1));
}

async function sendOnce(
  settings: Settings,
  request: Request,
  url: URL,
  what: string,
  requestId: string,
  deadline: Deadline,
): Promise<{ text: string; headers: Headers }> {
  const headers: Record<string, string> = { Accept: request.accepts ?? "application/json", "X-Request-Id": requestId };
  if (settings.apiKey !== undefined) headers["Authorization"] = `Bearer ${settings.apiKey}`;
  // So the service, too, stops working when nobody waits any more.
  if (deadline.leftMs < Infinity) headers["Request-Timeout-Ms"] = String(Math.max(1, Math.ceil(deadline.leftMs)));
  if (request.body) headers["Content-Type"] = "application/json";

  let response: Response;
  let text: string;
  try {
    // A redirect followed could turn a POST into a GET, and take the key elsewhere.
    const init = { method: methodOf(request), headers, signal: deadline.signal, redirect: "manual" } as const;
    response = await settings.fetch(url.href, request.body ? { ...init, body: toJson(request.body) } : init);
    text = await response.text();
  } catch (cause) {
    throw new ConnectionError(
      `${what} had no answer: ${reasons(cause)}; is the service running, and does it allow this origin?`,
      {
        requestId,
        cause,
      },
    );
  }
  const context = { requestId: response.headers.get("X-Request-Id") ?? requestId };
  if (response.ok) return { text, headers: response.headers };
  if (response.type === "opaqueredirect" || response.status < 400) {
    const target = response.headers.get("Location");
    const message = `${what} was redirected${target ? ` to ${target}` : ""}: set baseUrl to where the service itself is`;
    throw new UnexpectedAnswerError(message, response.status, context);
  }
  const problem = readProblem(text);
  const detail =
    problem?.detail ?? `${what}: the answer is not Kindred's but ${quoted(text)}; is a proxy in between, is baseUrl right?`;
  throw errorFor({ status: response.status, detail, retryAfter: retryAfterOf(response, problem), problem }, context);
}

/** The answer as JSON. */
export function parse(text: string, metadata: Metadata): object {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    // Told below.
  }
  if (typeof answer === "object" && answer !== null) return answer;
  throw new UnexpectedAnswerError(`the answer is not Kindred's but ${quoted(text)}; is baseUrl right?`, 200, metadata);
}

function addressOf(base: URL, request: Request): URL {
  const url = new URL(request.path, base);
  for (const [name, value] of Object.entries(request.parameters ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
}

const methodOf = (request: Request): "GET" | "POST" => request.method ?? (request.body ? "POST" : "GET");

/** Typed arrays become lists; JSON would make objects of them. */
const toJson = (body: object): string =>
  JSON.stringify(body, (_, value: unknown) =>
    value instanceof Float32Array || value instanceof Float64Array ? Array.from(value) : value,
  );

/** Seconds, from the header (a number or a date) or the problem document, which browsers see without CORS headers. */
function retryAfterOf(response: Response, problem: { retry_after?: unknown } | null): number | null {
  const header = response.headers.get("Retry-After")?.trim();
  if (header) {
    const seconds = /^\d+$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
    if (Number.isFinite(seconds)) return Math.max(0, seconds);
  }
  const seconds = problem?.retry_after;
  return typeof seconds === "number" && seconds >= 0 ? seconds : null;
}

/** 16 hexadecimal digits. `randomUUID` exists only in secure contexts. */
function randomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(8));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const quoted = (text: string): string =>
  text ? `"${text.slice(0, QUOTED).replace(/\s+/g, " ")}${text.length > QUOTED ? "…" : ""}"` : "empty";

/** `fetch` says why only in its error's cause. */
function reasons(error: unknown): string {
  const said: string[] = [];
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code } = cause as { code?: unknown };
    said.push(cause.message || String(code ?? cause.name));
  }
  return said.join(": ") || String(error);
}
