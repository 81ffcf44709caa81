interface RetryOptions {
  readonly signal: AbortSignal;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Called before each delay. */
  onError(error: unknown, delayMs: number): void;
}

/** Calls `attempt` until it resolves, with growing delays. Rejects only when the signal aborts. */
export async function retry<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { signal, firstDelayMs, maxDelayMs, onError } = options;
  for (let delayMs = firstDelayMs; ; delayMs = Math.min(2 * delayMs, maxDelayMs)) {
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
