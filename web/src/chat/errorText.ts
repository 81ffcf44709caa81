/** What a call that failed says of itself. Pure. */

const CALLED = "Error: ";

/**
 * The error as the result tells it: the log keeps the first 2,000 characters of an error, and the result has all of it.
 * Null if the result is something else.
 */
export function errorIn(result: string, error: string): string | null {
  const beginning = error.endsWith("…") ? error.slice(0, -1) : error;
  for (const told of [result.startsWith(CALLED) ? result.slice(CALLED.length) : result, result])
    if (told.startsWith(beginning)) return told;
  return null;
}
