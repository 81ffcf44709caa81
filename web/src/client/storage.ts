/**
 * The browser's memory of this page. A private window may refuse it, and it may be full: then the page itself remembers
 * as long as it is open.
 */

import { useCallback, useState } from "react";

/** What stands before each key. Two servers below different paths of one host name share a memory, but no keys. */
export const KEY_PREFIX = `limelight${folder(globalThis.location?.pathname ?? "/")}.`;

function folder(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** What the browser did not take, by its whole key; null for what it did not let go. */
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
  const whole = KEY_PREFIX + key;
  const text = value === undefined || value === null ? null : JSON.stringify(value);
  try {
    if (text === null) localStorage.removeItem(whole);
    else localStorage.setItem(whole, text);
    refused.delete(whole);
  } catch {
    refused.set(whole, text);
  }
}

/** State that is kept in the browser's storage. */
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

/** The keys that begin like this and have a value. */
export function storedKeys(beginning: string): string[] {
  const all = new Set(refused.keys());
  try {
    for (let place = 0; place < localStorage.length; place++) all.add(localStorage.key(place) ?? "");
  } catch {
    // Then only the page itself remembers.
  }
  const wanted = [...all].filter((key) => key.startsWith(KEY_PREFIX + beginning) && refused.get(key) !== null);
  return wanted.map((key) => key.slice(KEY_PREFIX.length));
}

/** Tells when another tab has changed something under such a key. Returns how to hear no more. */
export function onOtherTabChange(beginning: string, changed: () => void): () => void {
  const listen = ({ key }: StorageEvent) => {
    if (key === null || key.startsWith(KEY_PREFIX + beginning)) changed();
  };
  window.addEventListener("storage", listen);
  return () => window.removeEventListener("storage", listen);
}

/** Whatever was remembered of a session that is no more. */
export function removeSessionData(sessionId: string): void {
  const own = [`draft.${sessionId}`, `fresh.${sessionId}`, ...storedKeys(`outbox.${sessionId}.`).filter(isOwn)];
  for (const key of own) writeStored(key, null);

  // Ids of messages have no dots, those of sessions may: `a.` is the beginning of `a.b.` too.
  function isOwn(key: string): boolean {
    return key.lastIndexOf(".") === `outbox.${sessionId}`.length;
  }
}

/** Whatever somebody has written and not sent, in all sessions. */
export function removeUnsentMessages(): void {
  for (const key of ["draft.", "fresh.", "outbox."].flatMap(storedKeys)) writeStored(key, null);
}

function read(key: string): string | null {
  return refused.get(key) ?? (refused.has(key) ? null : localStorage.getItem(key));
}
