import { ApiError, api } from "../wire/api";
import { retry } from "./retry";

const TOO_MANY_REQUESTS = 429;

/**
 * Whether a session exists, requested until the server answers; connecting instead would create it.
 *
 * `onWait` gets the time until the next attempt. Rejects only when `signal` aborts.
 */
export function sessionExists(
  sessionId: string,
  signal: AbortSignal,
  onWait: (delayMs: number) => void,
): Promise<boolean> {
  const attempt = async () => {
    try {
      await api.session(sessionId, signal);
      return true;
    } catch (error) {
      if (!isFinal(error)) throw error;
      // After any other refusal the socket is refused too, and reports the reason.
      return error.status !== 404;
    }
  };
  return retry(attempt, { signal, firstDelayMs: 1000, maxDelayMs: 8000, onError: (_, delayMs) => onWait(delayMs) });
}

/** Whether the server has refused the request, and would refuse it again. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== TOO_MANY_REQUESTS;
}
