import { useSyncExternalStore } from "react";

/** One clock for all that shows running time; it ticks only while somebody looks. */
const watchers = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

function watch(changed: () => void): () => void {
  watchers.add(changed);
  if (timer === undefined) {
    now = Date.now();
    timer = setInterval(() => {
      now = Date.now();
      for (const tell of watchers) tell();
    }, 200);
  }
  return () => {
    watchers.delete(changed);
    if (watchers.size === 0) {
      clearInterval(timer);
      timer = undefined;
    }
  };
}

const still = () => () => {};

let skew = 0;

/** Times of the log are the server's: this machine's clock may be ahead of it by `ms`. */
export function alignClock(ms: number): void {
  skew = ms;
}

/** The server's time in ms, five times a second while `ticking`. */
export function useNow(ticking = true): number {
  return useSyncExternalStore(ticking ? watch : still, () => now - skew);
}
