/** How long a call may take, together with its caller's signal: one signal that aborts for either. */

/** `setTimeout` takes no more: it would fire at once. */
export const LONGEST_TIMEOUT_MS = 2 ** 31 - 1;

export class Deadline {
  readonly #controller = new AbortController();
  readonly #ends: number;
  readonly #release: () => void;

  /**
   * @param timeoutMs from now on; `Infinity` for none
   * @param onTimeout makes the reason of an abort by the clock
   * @param outer the caller's signal; its reason is passed on
   */
  constructor(timeoutMs: number, onTimeout: () => Error, outer?: AbortSignal) {
    this.#ends = performance.now() + timeoutMs;
    const timer = timeoutMs === Infinity ? undefined : setTimeout(() => this.#controller.abort(onTimeout()), timeoutMs);
    const abort = () => this.#controller.abort(outer?.reason);
    outer?.addEventListener("abort", abort, { once: true });
    this.#release = () => {
      clearTimeout(timer);
      outer?.removeEventListener("abort", abort);
    };
    if (outer?.aborted) abort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Milliseconds that are left: `Infinity` without a timeout, never negative. */
  get leftMs(): number {
    return Math.max(0, this.#ends - performance.now());
  }

  /** Waits, or rejects with the signal's reason as soon as that aborts. */
  sleep(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const { signal } = this;
      const end = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        if (signal.aborted) reject(signal.reason as Error);
        else resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener("abort", end);
      if (signal.aborted) end();
    });
  }

  /** Lets go of the timer and the caller's signal. */
  release(): void {
    this.#release();
  }
}
