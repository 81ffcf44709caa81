/** Delays between the attempts to load a lazy module of the page, in milliseconds: about two minutes in all. */
const DELAYS: readonly number[] = [500, 1_000, 2_000, 4_000, ...Array<number>(15).fill(8_000)];

/**
 * Calls `load`, a dynamic import, until it succeeds. Rejects with the last error if all attempts fail.
 *
 * `React.lazy` never retries a rejected import, so without this a short network failure would break a pane until the page is loaded again.
 */
export async function retryImport<T>(load: () => Promise<T>, delays = DELAYS): Promise<T> {
  for (const delay of delays) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
  return load();
}
