import { useSyncExternalStore } from "react";

/** An observable value: it notifies its subscribers of changes. React components read it with `useStore`. */
export class Store<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    if (this.listeners.size === 0) this.onFirstSubscriber();
    this.listeners.add(listener);
    return () => {
      if (this.listeners.delete(listener) && this.listeners.size === 0) this.onNoSubscribers();
    };
  };

  readonly getSnapshot = (): T => this.value;

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const notify of [...this.listeners]) notify();
  }

  /** Called before the first subscriber is added. */
  protected onFirstSubscriber(): void {}

  /** Called after the last subscriber is removed. */
  protected onNoSubscribers(): void {}
}

export function useStore<T>(store: Pick<Store<T>, "subscribe" | "getSnapshot">): T {
  return useSyncExternalStore(store.subscribe, store.getSnapshot);
}
