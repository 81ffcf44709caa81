/** The clock of the page, from which all durations that count up are computed. */

import { createContext, useContext, useSyncExternalStore } from "react";
import { Store } from "../client/store";

const TICK_MS = 200;

/** A store of the server's time in ms. It ticks only while it has subscribers. */
export class Clock extends Store<number> {
  private skew = 0;
  private timer: ReturnType<typeof setInterval> | undefined;

  constructor() {
    super(Date.now());
  }

  /** Sets how far this machine's clock is ahead of the server's, in ms. */
  setSkew(skew: number): void {
    this.skew = skew;
    this.tick();
  }

  protected override onFirstSubscriber(): void {
    this.tick();
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  protected override onNoSubscribers(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    this.set(Date.now() - this.skew);
  }
}

const ClockContext = createContext(new Clock());

export const ClockProvider = ClockContext.Provider;

const neverTicks = () => () => {};

/** The server's time in ms, updated five times a second while `isTicking`. */
export function useNow(isTicking = true): number {
  const clock = useContext(ClockContext);
  return useSyncExternalStore(isTicking ? clock.subscribe : neverTicks, clock.getSnapshot);
}

/** Time in ms from `startedAt` to `endedAt`, or to now while `endedAt` is null. */
export function useElapsed(startedAt: number, endedAt: number | null): number {
  const now = useNow(endedAt === null);
  return (endedAt ?? Math.max(now, startedAt)) - startedAt;
}
