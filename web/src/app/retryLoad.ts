/** Delays between the attempts to load a part of the page, in milliseconds: about two minutes in all. */
const DELAYS: readonly number[] = [500, 1_000, 2_000, 4_000, ...Array<number>(15).fill(8_000)];

/**
 * Calls `load` until it succeeds, with delays between the attempts. Rejects with the last error if all attempts fail.
 * `React.lazy` keeps a rejection for good, so a connection that breaks while a pane is loaded would break the pane.
 */
export async function retryLoad<T>(load: () => Promise<T>, delays = DELAYS): Promise<T> {
  for (const delay of delays) {
    try {
      return await load();
    } catch {
      await new Promise((resolve) => setTimeout(resolve, delay));
    }
  }
  return load();
}
