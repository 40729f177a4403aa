/** Sends a request until it is answered, refused, aborted or out of time. */

import { Deadline } from "./deadline.js";
import { BusyError, ConnectionError, errorFor, readProblem, TimeoutError, UnexpectedAnswerError } from "./errors.js";
import { type CallOptions, checkCall, type Settings } from "./settings.js";

/** A request, relative to the base URL. */
export interface Request {
  readonly path: string;
  readonly parameters?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent with POST, as JSON unless it is a form. Without one, the request is a GET unless `method` says otherwise. */
  readonly body?: object;
  /** Whether it is about the rows of a model, and so about some position of them. */
  readonly isOfModel?: boolean;
  readonly method?: "POST" | "DELETE";
  /** With it, the service does the change once, however often it is sent. */
  readonly idempotencyKey?: string;
  /** Only at this position. */
  readonly ifPosition?: string | undefined;
  /** Reached by the change. */
  readonly sourcePosition?: string | undefined;
  /** It is a change that has no key and must not be done twice: it is sent again only after 429, when nothing was begun. */
  readonly isDoneOnce?: boolean;
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

/** An answer of success. */
interface Received {
  /** The request's method and address, for messages. */
  readonly what: string;
  readonly text: string;
  readonly metadata: Metadata;
}

/** The first back-off is up to this long, the next up to twice as long, and so on. */
const FIRST_BACK_OFF_MS = 200;
const LONGEST_BACK_OFF_MS = 5_000;

/** Of an answer that is not Kindred's, so many characters are quoted. */
const QUOTED = 120;

/**
 * @param options `timeoutMs` and `retries` instead of the settings'
 */
export async function send(settings: Settings, request: Request, options: CallOptions): Promise<Received> {
  checkCall(options);
  const { timeoutMs = settings.timeoutMs, retries = settings.retries, requestId = randomId(), signal } = options;
  const url = addressOf(settings.base, request);
  const method = request.method ?? (request.body ? "POST" : "GET");
  const what = `${method} ${url.origin}${url.pathname}`;
  const headers: Record<string, string> = { Accept: request.accepts ?? "application/json", "X-Request-Id": requestId };
  if (settings.apiKey !== undefined) headers["Authorization"] = `Bearer ${settings.apiKey}`;
  // A form's type names its boundary, which `fetch` chooses.
  const form = request.body instanceof FormData ? request.body : null;
  if (request.body && !form) headers["Content-Type"] = "application/json";
  const minPosition = options.minPosition ?? settings.minPosition;
  if (request.isOfModel && minPosition !== undefined) headers["Min-Position"] = minPosition;
  if (request.idempotencyKey !== undefined) headers["Idempotency-Key"] = request.idempotencyKey;
  if (request.ifPosition !== undefined) headers["If-Position"] = request.ifPosition;
  if (request.sourcePosition !== undefined) headers["Source-Position"] = request.sourcePosition;
  // A redirect followed could turn a POST into a GET, and take the key elsewhere.
  const body = form ?? (request.body ? toJson(request.body) : null);
  const init: RequestInit = { method, headers, body, redirect: "manual" };

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
        // So the service, too, stops working when nobody waits any more.
        if (timeoutMs < Infinity) headers["Request-Timeout-Ms"] = String(Math.max(1, Math.ceil(deadline.leftMs)));
        const sent = settings.fetch(url.href, { ...init, signal: deadline.signal });
        const { text, response } = await answerTo(sent, what, requestId);
        const serverTiming = response.headers.get("Server-Timing");
        return { what, text, metadata: { requestId: idOf(response, requestId), attempts, serverTiming } };
      } catch (error) {
        // Whatever failed then failed because of it.
        deadline.signal.throwIfAborted();
        last = error;
        const mayRepeat = attempts <= retries && !(request.isDoneOnce && !isRefused(error));
        const wait = mayRepeat ? waitBeforeRetry(error, attempts, settings.maxRetryAfterMs) : null;
        // The error says more than a timeout that is certain to follow.
        if (wait === null || wait >= deadline.leftMs) throw error;
        await deadline.sleep(wait);
      }
    }
  } finally {
    deadline.release();
  }
}

/** Whether the service did not begin. */
const isRefused = (error: unknown): boolean => error instanceof BusyError && error.status === 429;

/** Milliseconds to wait before the request is sent again; `null` if it must not be. */
function waitBeforeRetry(error: unknown, attempts: number, maxRetryAfterMs: number): number | null {
  if (!(error instanceof ConnectionError || error instanceof BusyError)) return null;
  const retryAfterMs = error instanceof BusyError ? (error.retryAfter ?? 0) * 1000 : 0;
  if (retryAfterMs > maxRetryAfterMs) return null;
  // A random part, so that clients that failed together do not come back together.
  return retryAfterMs + Math.random() * Math.min(LONGEST_BACK_OFF_MS, FIRST_BACK_OFF_MS * 2 ** (attempts - 1));
}

/** The whole answer, if it is one of success. */
async function answerTo(sent: Promise<Response>, what: string, requestId: string): Promise<{ text: string; response: Response }> {
  let response: Response;
  let text: string;
  try {
    response = await sent;
    text = await response.text();
  } catch (cause) {
    const advice = "is the service running, and does it allow this origin?";
    throw new ConnectionError(`${what} had no answer: ${reasons(cause)}; ${advice}`, { requestId, cause });
  }
  if (response.ok) return { text, response };
  const context = { requestId: idOf(response, requestId) };
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
export function parse({ what, text, metadata }: Received): object {
  let answer: unknown;
  try {
    answer = JSON.parse(text);
  } catch {
    // Told below.
  }
  if (typeof answer === "object" && answer !== null) return answer;
  throw new UnexpectedAnswerError(`${what}: the answer is not Kindred's but ${quoted(text)}; is baseUrl right?`, 200, metadata);
}

function addressOf(base: URL, request: Request): URL {
  const url = new URL(request.path, base);
  for (const [name, value] of Object.entries(request.parameters ?? {})) {
    if (value !== undefined) url.searchParams.set(name, String(value));
  }
  return url;
}

/** The service's word counts: behind a proxy, the id may be another. */
const idOf = (response: Response, requestId: string): string => response.headers.get("X-Request-Id") ?? requestId;

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
export function randomId(): string {
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
    // OpenSSL's messages end with a line break.
    said.push(cause.message.trim() || String(code ?? cause.name));
  }
  return said.join(": ") || String(error);
}
