import { ApiError, api } from "./api";
import { retry } from "./retry";

const TOO_MANY_REQUESTS = 429;

/**
 * Returns whether a session exists. Repeats the request until the server answers.
 *
 * Opening a socket to find out would create the session.
 *
 * `onWait` is called with the delay before the next attempt, in ms. Rejects only when `signal` aborts.
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
      // After any other refusal the session counts as existing: the socket will be refused too, and show the reason.
      return error.status !== 404;
    }
  };
  return retry(attempt, { signal, firstDelayMs: 1000, maxDelayMs: 8000, onError: (_, delayMs) => onWait(delayMs) });
}

/** Whether an error is a permanent refusal of the server, after which a retry is useless. */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== TOO_MANY_REQUESTS;
}
