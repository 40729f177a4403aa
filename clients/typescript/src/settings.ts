/** The options of clients and calls, and their checks: a wrong one fails at once, with the option's name. */

import { LONGEST_TIMEOUT_MS } from "./deadline.js";

const HOUR_MS = 3_600_000;

/** The options of a client. */
export interface ClientOptions {
  /**
   * Where the service is, with the path prefix that a proxy may put before it. In a browser it may be relative to the
   * page.
   */
  baseUrl: string | URL;
  /** The model that is asked, such as `glove`; without it, the service's default model. */
  model?: string;
  /** Sent as `Authorization: Bearer KEY`. Anyone can read a key in a web page's scripts. */
  apiKey?: string;
  /** How long a call may take with all its retries, in milliseconds: 30,000 by default; `Infinity` for no limit. */
  timeoutMs?: number;
  /** How often a call is repeated at most, from 0 to 10: 2 by default. `reload` and health checks are never repeated. */
  retries?: number;
  /**
   * The longest `Retry-After` that is waited for, in milliseconds: 10,000 by default, at most an hour. If the service asks
   * for more, the call fails at once.
   */
  maxRetryAfterMs?: number;
  /** Instead of one for each call: `after` sets it. */
  minPosition?: string;
  /** What sends requests, instead of the global `fetch`. It must heed `signal`. */
  fetch?: typeof globalThis.fetch;
}

/** The options of one call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's reason. The service drops the work. */
  signal?: AbortSignal;
  /** Instead of the client's. */
  timeoutMs?: number;
  /** Instead of the client's. */
  retries?: number;
  /** The request's id: 1 to 128 visible ASCII characters. A random one by default. All retries have the same. */
  requestId?: string;
  /**
   * `VERSION/POSITION`, as the answer to a change of the table has them: the answer is about the rows there, or at a later
   * position. Only a request of a model sends it.
   */
  minPosition?: string;
}

/** Their names. */
const CLIENT_OPTIONS: Readonly<Record<keyof ClientOptions, true>> = {
  baseUrl: true,
  model: true,
  apiKey: true,
  timeoutMs: true,
  retries: true,
  maxRetryAfterMs: true,
  minPosition: true,
  fetch: true,
};
const CALL_OPTIONS: Readonly<Record<keyof CallOptions, true>> = {
  signal: true,
  timeoutMs: true,
  retries: true,
  requestId: true,
  minPosition: true,
};

/** The options of a client, checked. */
export interface Settings {
  readonly base: URL;
  readonly model: string | undefined;
  readonly apiKey: string | undefined;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly maxRetryAfterMs: number;
  readonly minPosition: string | undefined;
  readonly fetch: typeof globalThis.fetch;
}

/** How one change of a table is sent. */
export interface ChangeOptions extends CallOptions {
  /** A text that no other change has, instead of one that the client makes: a change that is sent again is done once. */
  readonly idempotencyKey?: string;
  /** `VERSION/POSITION` of a change: at every other position the change is refused, with 412 `position_changed`. */
  readonly ifPosition?: string;
  /** Positions that the table reaches by the change in systems that it follows, such as `postgres:0/16B3748`. */
  readonly sourcePosition?: string;
}

/**
 * @throws {TypeError} an unknown option, or a URL, a model's name, a key or an id that can't be sent
 * @throws {RangeError} a number that is out of range
 */
export function checked(options: ClientOptions): Settings {
  if (typeof options !== "object" || options === null || options instanceof URL) {
    throw new TypeError('a client takes its options as an object: new Kindred({ baseUrl: "http://127.0.0.1:8080" })');
  }
  checkNames(options, CLIENT_OPTIONS, "a client");
  const { model, apiKey, minPosition, timeoutMs = 30_000, retries = 2, maxRetryAfterMs = 10_000 } = options;
  if (apiKey !== undefined) checkVisible("apiKey", apiKey, Infinity);
  if (model !== undefined) checkModel(model);
  if (minPosition !== undefined) checkPosition(minPosition);
  if (options.fetch !== undefined && typeof options.fetch !== "function") throw new TypeError("fetch must be a function");
  checkTimeout(timeoutMs);
  checkRetries(retries);
  checkRetryAfter(maxRetryAfterMs);
  // Browsers call their `fetch` only without another `this`.
  const send = options.fetch ?? ((...request) => globalThis.fetch(...request));
  return { base: baseOf(options.baseUrl), model, apiKey, timeoutMs, retries, maxRetryAfterMs, minPosition, fetch: send };
}

/** @throws {TypeError | RangeError} as `checked` */
export function checkCall(options: CallOptions): void {
  if (typeof options !== "object" || options === null) {
    throw new TypeError(`a call takes its options as an object, such as { timeoutMs: 500 }, not ${shown(options)}`);
  }
  checkNames(options, CALL_OPTIONS, "a call");
  const { signal, timeoutMs, retries, requestId, minPosition } = options;
  // Not `instanceof`, because another realm has another class.
  if (signal && typeof signal.addEventListener !== "function") {
    throw new TypeError("signal must be an AbortSignal, such as the `signal` of an AbortController");
  }
  if (timeoutMs !== undefined) checkTimeout(timeoutMs);
  if (retries !== undefined) checkRetries(retries);
  if (requestId !== undefined) checkVisible("requestId", requestId, 128);
  if (minPosition !== undefined) checkPosition(minPosition);
}

/** @throws {TypeError} a position that no change has */
function checkPosition(position: string): void {
  if (typeof position === "string" && /^[\x21-\x7e]+[/:][\dA-F/]+$/.test(position)) return;
  const right = "VERSION/POSITION, as the answer to a change has them, or SOURCE:POSITION of a system that the table follows";
  throw new TypeError(`minPosition must be ${right}, not ${shown(position)}`);
}

/** @throws {TypeError} positions that can't be sent */
export function checkPositions(positions: Readonly<Record<string, string | undefined>>): void {
  for (const [name, position] of Object.entries(positions)) {
    if (position !== undefined) checkVisible(name, position, Infinity);
  }
}

/** @throws {TypeError} an idempotency key that can't be sent */
export function checkIdempotencyKey(key: string): void {
  checkVisible("idempotencyKey", key, Infinity);
}

/** Types see a misspelt option; plain JavaScript would go on without it. */
function checkNames(options: object, known: Readonly<Record<string, true>>, of: string): void {
  const names = Object.keys(known);
  const unknown = Object.keys(options).find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const likest = names.find((name) => areAlike(name, unknown));
  const hint =
    likest !== undefined
      ? ` (did you mean \`${likest}\`?)`
      : Object.hasOwn(CLIENT_OPTIONS, unknown)
        ? ": it is one of the client"
        : "";
  throw new TypeError(`${of} has no option \`${unknown}\`${hint}; its options are ${names.join(", ")}`);
}

/** Whether one name is a part of the other, as `timeout` of `timeoutMs`. */
function areAlike(a: string, b: string): boolean {
  const [short = "", long = ""] = [a, b]
    .map((name) => name.toLowerCase().replace(/[^a-z]/g, ""))
    .sort((one, other) => one.length - other.length);
  return short.length >= 3 && long.includes(short);
}

/** @throws {TypeError} if a path can't have it: URLs take `.` and `..` for folders */
export function checkModel(model: string): void {
  if (typeof model !== "string" || ["", ".", ".."].includes(model)) {
    throw new TypeError(`model must be a model's name, not \`${String(model)}\`: models() lists them`);
  }
}

/** The folder of all routes. */
function baseOf(baseUrl: string | URL): URL {
  let base: URL;
  try {
    base = new URL(baseUrl, (globalThis.location as Location | undefined)?.href);
  } catch {
    throw new TypeError(`baseUrl must be an address such as http://127.0.0.1:8080, not \`${baseUrl}\``);
  }
  const isPlain = /^https?:$/.test(base.protocol) && !base.username && !base.password && !base.search && !base.hash;
  if (!isPlain) {
    throw new TypeError(`baseUrl must be an http or https address without a user, a query or a fragment, not \`${baseUrl}\``);
  }
  if (!base.pathname.endsWith("/")) base.pathname += "/";
  return base;
}

function checkTimeout(timeoutMs: number): void {
  const isRight = timeoutMs === Infinity || (isNumber(timeoutMs) && timeoutMs >= 1 && timeoutMs <= LONGEST_TIMEOUT_MS);
  if (!isRight) throw new RangeError(`timeoutMs must be from 1 to ${LONGEST_TIMEOUT_MS}, or Infinity, not ${shown(timeoutMs)}`);
}

function checkRetryAfter(maxRetryAfterMs: number): void {
  const isRight = isNumber(maxRetryAfterMs) && maxRetryAfterMs >= 0 && maxRetryAfterMs <= HOUR_MS;
  if (!isRight) throw new RangeError(`maxRetryAfterMs must be from 0 to ${HOUR_MS}, not ${shown(maxRetryAfterMs)}`);
}

function checkRetries(retries: number): void {
  const isRight = Number.isInteger(retries) && retries >= 0 && retries <= 10;
  if (!isRight) throw new RangeError(`retries must be a whole number from 0 to 10, not ${shown(retries)}`);
}

/** `"500"` would be compared as a number, and added as a text. */
const isNumber = (value: unknown): boolean => typeof value === "number";

/** A value in a message: texts have quotes. */
const shown = (value: unknown): string => (typeof value === "string" ? JSON.stringify(value) : String(value));

/** A header's value; it is not repeated in the message, since it may be secret. */
function checkVisible(name: string, value: string, longest: number): void {
  const isRight = typeof value === "string" && /^[\x21-\x7e]+$/.test(value) && value.length <= longest;
  const number = longest < Infinity ? `1 to ${longest} ` : "";
  if (!isRight) throw new TypeError(`${name} must be ${number}visible ASCII characters, without spaces`);
}
