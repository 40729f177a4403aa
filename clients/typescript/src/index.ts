/** A client for Kindred: exact nearest neighbours and word arithmetic over word vectors. */

export { Kindred, metadata } from "./client.js";
export {
  AccessError,
  BusyError,
  ConnectionError,
  errorOf,
  KindredError,
  NotFoundError,
  RequestError,
  ServiceError,
  TimeoutError,
  UnexpectedAnswerError,
  UnknownWordError,
} from "./errors.js";
export type { CallOptions, ChangeOptions, ClientOptions } from "./settings.js";
export type { Metadata } from "./transport.js";
export type * from "./types.js";
