/** The clock behind every running time on the page. */

import { createContext, useContext, useSyncExternalStore } from "react";

const TICK_MS = 200;

/** The server's time. It ticks only while it has subscribers. */
export class Clock {
  private readonly listeners = new Set<() => void>();
  private time = Date.now();
  private timer: ReturnType<typeof setInterval> | undefined;
  /** How far this machine's clock is ahead of the server's, in ms. */
  skew = 0;

  readonly now = (): number => this.time - this.skew;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.timer === undefined) {
      this.time = Date.now();
      this.timer = setInterval(() => {
        this.time = Date.now();
        for (const notify of this.listeners) notify();
      }, TICK_MS);
    }
    return () => {
      this.listeners.delete(listener);
      if (this.listeners.size > 0) return;
      clearInterval(this.timer);
      this.timer = undefined;
    };
  };
}

const ClockContext = createContext(new Clock());

export const ClockProvider = ClockContext.Provider;

const neverTicks = () => () => {};

/** The server's time in ms, five times a second while `isTicking`. */
export function useNow(isTicking = true): number {
  const clock = useContext(ClockContext);
  return useSyncExternalStore(isTicking ? clock.subscribe : neverTicks, clock.now);
}
