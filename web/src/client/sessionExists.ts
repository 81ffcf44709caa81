import { ApiError, api } from "../wire/api";

const FIRST_DELAY_MS = 1000;
const MAX_DELAY_MS = 8000;
const TOO_MANY = 429;

/**
 * Whether a session exists, requested until the server answers; connecting instead would create it.
 *
 * `waiting` gets the time until the next attempt. Rejects only when `left` aborts.
 */
export async function sessionExists(
  sessionId: string,
  left: AbortSignal,
  waiting: (ms: number) => void,
): Promise<boolean> {
  for (let wait = FIRST_DELAY_MS; ; wait = Math.min(MAX_DELAY_MS, 2 * wait)) {
    try {
      await api.session(sessionId, left);
      return true;
    } catch (error) {
      left.throwIfAborted();
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) return false;
      // The socket is refused too, and reports the reason.
      if (error.status > 0 && error.status < 500 && error.status !== TOO_MANY) return true;
    }
    waiting(wait);
    await pause(wait, left);
  }
}

function pause(ms: number, left: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    left.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(left.reason);
    });
  });
}
