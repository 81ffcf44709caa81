/** Reads and writes values in the browser's storage. Values that the browser refuses stay in memory until a reload. */

import { useCallback, useState } from "react";

/** Prefix of each key. It contains the server's path, because servers on one host share the browser's storage. */
const KEY_PREFIX = `limelight${folder(globalThis.location?.pathname ?? "/")}.`;

function folder(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** Values that the browser refused to store, by key; null if it refused to remove the key. */
const refused = new Map<string, string | null>();

export function readStored<T>(key: string, fallback: T): T {
  try {
    const text = read(KEY_PREFIX + key);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function writeStored(key: string, value: unknown): void {
  const fullKey = KEY_PREFIX + key;
  const text = value === undefined || value === null ? null : JSON.stringify(value);
  try {
    if (text === null) localStorage.removeItem(fullKey);
    else localStorage.setItem(fullKey, text);
    refused.delete(fullKey);
  } catch {
    refused.set(fullKey, text);
  }
}

/** `useState` whose value is stored in the browser. */
export function useStoredState<T>(key: string, initial: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => readStored(key, initial));
  const store = useCallback(
    (next: T) => {
      writeStored(key, next);
      setValue(next);
    },
    [key],
  );
  return [value, store];
}

/** The keys with this prefix that have a stored value. */
export function storedKeys(beginning: string): string[] {
  const all = new Set(refused.keys());
  try {
    for (let place = 0; place < localStorage.length; place++) all.add(localStorage.key(place) ?? "");
  } catch {
    // Only the values in memory are used.
  }
  const wanted = [...all].filter((key) => key.startsWith(KEY_PREFIX + beginning) && refused.get(key) !== null);
  return wanted.map((key) => key.slice(KEY_PREFIX.length));
}

/** Calls `changed` when another tab changes a key with this prefix. Returns the function that unsubscribes. */
export function onOtherTabChange(beginning: string, changed: () => void): () => void {
  const listen = ({ key }: StorageEvent) => {
    if (key === null || key.startsWith(KEY_PREFIX + beginning)) changed();
  };
  window.addEventListener("storage", listen);
  return () => window.removeEventListener("storage", listen);
}

/** The keys of a session's unsent messages. */
export function outboxKeys(sessionId: string): string[] {
  const prefix = `outbox.${sessionId}.`;
  // Excludes keys of other sessions: session `a.b` has the prefix `a.` too. Message ids contain no dots.
  return storedKeys(prefix).filter((key) => !key.slice(prefix.length).includes("."));
}

/** Removes all values of a deleted session. */
export function removeSessionData(sessionId: string): void {
  const own = [`draft.${sessionId}`, `fresh.${sessionId}`, ...outboxKeys(sessionId)];
  for (const key of own) writeStored(key, null);
}

/** Removes all unsent messages and drafts. */
export function removeUnsentMessages(): void {
  for (const key of ["draft.", "fresh.", "outbox."].flatMap(storedKeys)) writeStored(key, null);
}

function read(key: string): string | null {
  return refused.get(key) ?? (refused.has(key) ? null : localStorage.getItem(key));
}
