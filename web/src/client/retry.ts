interface RetryOptions {
  readonly signal: AbortSignal;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Called after each failed attempt, with the delay before the next one. */
  onError(error: unknown, delayMs: number): void;
}

/** The delay before the next attempt, in ms: `firstMs` after the first failure, then doubled up to `maxMs`. */
export function backoffDelay(earlierFailures: number, firstMs: number, maxMs: number): number {
  return Math.min(maxMs, firstMs * 2 ** earlierFailures);
}

/** Calls `attempt` until it resolves, with a growing delay between attempts. Rejects only when the signal aborts. */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, firstDelayMs, maxDelayMs, onError } = options;
  for (let earlierFailures = 0; ; earlierFailures += 1) {
    const delayMs = backoffDelay(earlierFailures, firstDelayMs, maxDelayMs);
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      onError(error, delayMs);
    }
    await sleep(delayMs, signal);
  }
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    });
  });
}
