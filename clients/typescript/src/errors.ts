/** What can go wrong, as classes to tell apart with `instanceof`, and how they are made from problem documents. */

import type { Problem, ProblemCode, UnknownWord } from "./types.js";

/** What an error knows of its request. */
export interface ErrorContext {
  /** The request's id, which the service's log has too. `null` for an error inside a batch. */
  requestId?: string | null;
  /** The error that led to this one. */
  cause?: unknown;
}

/**
 * Any error of a call, except for aborts: an aborted call rejects with the signal's own reason, as `fetch` does.
 *
 * ```text
 * KindredError
 * ├── ConnectionError            no answer arrived
 * ├── TimeoutError               not answered in time, by the client's clock or by the service's (504)
 * ├── UnexpectedAnswerError      an answer that is not Kindred's: another program or a redirect at this address
 * └── ServiceError               a status from 400 on
 *     ├── RequestError           the request is wrong, and would be wrong again
 *     │   ├── UnknownWordError   the model does not have a word; with suggestions
 *     │   └── NotFoundError      no such model, head or route
 *     ├── AccessError            the API key is missing, not valid, or not an admin's (401, 403)
 *     └── BusyError              try later or at another instance (429, 503)
 * ```
 */
export class KindredError extends Error {
  /** The request's id, which the service's log has too. `null` for an error inside a batch. */
  readonly requestId: string | null;

  constructor(message: string, { requestId = null, cause }: ErrorContext = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.requestId = requestId;
  }

  /** The class's name. On the prototype, because a bundler may rename the class. */
  static {
    this.prototype.name = "KindredError";
  }
}

/** No answer, or only a part of one: the service is not there, a connection broke, or a browser refused (CORS). */
export class ConnectionError extends KindredError {
  static {
    this.prototype.name = "ConnectionError";
  }
}

/** The call took longer than its `timeoutMs`, or the service gave up (504); then `cause` has its answer. */
export class TimeoutError extends KindredError {
  static {
    this.prototype.name = "TimeoutError";
  }
}

/** An answer that Kindred does not give: no JSON, or a redirect. Often the base URL is that of another program. */
export class UnexpectedAnswerError extends KindredError {
  /** The HTTP status; 0 for a redirect in a browser, which hides it. */
  readonly status: number;

  constructor(message: string, status: number, context?: ErrorContext) {
    super(message, context);
    this.status = status;
  }

  static {
    this.prototype.name = "UnexpectedAnswerError";
  }
}

/** The service, or a proxy before it, refused the request or failed: a status from 400 on. */
export class ServiceError extends KindredError {
  /** The HTTP status. */
  readonly status: number;
  /** What is wrong, for programs; `null` if the answer was no problem document, such as a proxy's error page. */
  readonly code: ProblemCode | null;
  /** What is wrong and how to fix it, for people. */
  readonly detail: string;
  /** Seconds to wait before a retry, if the service says so. */
  readonly retryAfter: number | null;
  /** The whole problem document (RFC 9457), if it was one. */
  readonly problem: Problem | null;

  constructor(failure: Failure, context?: ErrorContext) {
    super(`${failure.detail} (${[failure.status, failure.problem?.code].filter(Boolean).join(" ")})`, context);
    this.status = failure.status;
    this.code = failure.problem?.code ?? null;
    this.detail = failure.detail;
    this.retryAfter = failure.retryAfter;
    this.problem = failure.problem;
  }

  static {
    this.prototype.name = "ServiceError";
  }
}

/** The request is wrong, and would be wrong again: `detail` says what to change. */
export class RequestError extends ServiceError {
  /** The field or parameter that is wrong, with its path, such as `positive[0].weight`. */
  get field(): string | null {
    return this.problem?.field ?? null;
  }

  static {
    this.prototype.name = "RequestError";
  }
}

/** The model does not have a word of the query. */
export class UnknownWordError extends RequestError {
  /** Every unknown word of the query, each with words of the model that are spelt similarly. */
  readonly unknown: readonly UnknownWord[];

  constructor(failure: Failure, context?: ErrorContext) {
    super(failure, context);
    const listed: unknown = failure.problem?.unknown;
    this.unknown = Array.isArray(listed) ? listed.filter(isUnknownWord) : [];
  }

  static {
    this.prototype.name = "UnknownWordError";
  }
}

/** There is no such model, head or route. */
export class NotFoundError extends RequestError {
  static {
    this.prototype.name = "NotFoundError";
  }
}

/** The API key is missing or not valid (401), or it is not an admin's (403). */
export class AccessError extends ServiceError {
  static {
    this.prototype.name = "AccessError";
  }
}

/** The service is full (429), restarting or stopping (503): try later or at another instance. */
export class BusyError extends ServiceError {
  static {
    this.prototype.name = "BusyError";
  }
}

/** What is known of an answer with a status from 400 on. */
export interface Failure {
  readonly status: number;
  readonly detail: string;
  readonly retryAfter: number | null;
  readonly problem: Problem | null;
}

/**
 * The error that a problem document of a batch stands for: of an item of `results` that has an `error`.
 *
 * @example
 * const { results } = await kindred.nearest({ queries: [{ word: "Frog" }, { word: "toad" }] });
 * const [first] = results;
 * const error = first.error && errorOf(first.error);
 * if (error instanceof UnknownWordError) console.log(error.unknown[0].suggestions); // [ 'frog' ]
 */
export function errorOf(problem: Problem): ServiceError | TimeoutError {
  const { status, detail, retry_after: retryAfter = null } = problem;
  return errorFor({ status, detail, retryAfter, problem }, { requestId: problem.request_id ?? null });
}

/** The error of the class that the status and the code ask for. */
export function errorFor(failure: Failure, context?: ErrorContext): ServiceError | TimeoutError {
  const { status, problem } = failure;
  if (status === 504) {
    const cause = new ServiceError(failure, context);
    return new TimeoutError(cause.message, { ...context, cause });
  }
  if (problem?.code === "unknown_word") return new UnknownWordError(failure, context);
  if (status === 401 || status === 403) return new AccessError(failure, context);
  if (status === 404) return new NotFoundError(failure, context);
  if (status === 429 || status === 503) return new BusyError(failure, context);
  // The others say that something went wrong on the way (408), beside it (409) or in the service.
  const isTheRequests = (status < 500 && status !== 408 && status !== 409) || status === 501;
  return isTheRequests ? new RequestError(failure, context) : new ServiceError(failure, context);
}

/** A problem document, if it is one: proxies answer with pages and with JSON of their own. */
export function readProblem(text: string): Problem | null {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    return null;
  }
  const { code, detail } = Object(document) as Record<string, unknown>;
  return typeof code === "string" && typeof detail === "string" ? (document as Problem) : null;
}

function isUnknownWord(entry: unknown): entry is UnknownWord {
  const { word, suggestions } = Object(entry) as Record<string, unknown>;
  return typeof word === "string" && Array.isArray(suggestions);
}
