import { useSyncExternalStore } from "react";

export interface Readable<T> {
  subscribe(listener: () => void): () => void;
  getSnapshot(): T;
}

/** A value with subscribers, in the form that React's `useSyncExternalStore` takes. */
export class Store<T> implements Readable<T> {
  private readonly listeners = new Set<() => void>();

  constructor(private value: T) {}

  readonly subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  readonly getSnapshot = (): T => this.value;

  set(value: T): void {
    if (Object.is(value, this.value)) return;
    this.value = value;
    for (const notify of [...this.listeners]) notify();
  }
}

export function useStore<T>(store: Readable<T>): T {
  return useSyncExternalStore(store.subscribe, store.getSnapshot);
}
