import { ApiError, api } from "../wire/api";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 8000;
const TOO_MANY = 429;

/**
 * Whether there is a session of this name, asked until the server knows: connecting instead would make one. `waiting` is
 * told how long it is until the next attempt. Rejects only if the caller has left.
 */
export async function sessionExists(
  sessionId: string,
  left: AbortSignal,
  waiting: (ms: number) => void,
): Promise<boolean> {
  for (let wait = FIRST_WAIT; ; wait = Math.min(LONGEST_WAIT, 2 * wait)) {
    try {
      await api.session(sessionId, left);
      return true;
    } catch (error) {
      left.throwIfAborted();
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 404) return false;
      // What else it refuses it also refuses on the socket, which says why.
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
