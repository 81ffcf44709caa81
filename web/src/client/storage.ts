/**
 * The browser's memory of this page. A private window may refuse it, and it may be full: then the page itself remembers
 * as long as it is open.
 */

/** What stands before each key. Two servers below different paths of one host name share a memory, but no keys. */
export const PREFIX = `limelight${folder(globalThis.location?.pathname ?? "/")}.`;

function folder(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** What the browser did not take, by its whole key; null for what it did not let go. */
const refused = new Map<string, string | null>();

export function recall<T>(key: string, fallback: T): T {
  try {
    const text = read(PREFIX + key);
    return text === null ? fallback : (JSON.parse(text) as T);
  } catch {
    return fallback;
  }
}

export function remember(key: string, value: unknown): void {
  const whole = PREFIX + key;
  const text = value === undefined || value === null ? null : JSON.stringify(value);
  try {
    if (text === null) localStorage.removeItem(whole);
    else localStorage.setItem(whole, text);
    refused.delete(whole);
  } catch {
    refused.set(whole, text);
  }
}

/** The keys that begin like this and have a value. */
export function remembered(beginning: string): string[] {
  const all = new Set(refused.keys());
  try {
    for (let place = 0; place < localStorage.length; place++) all.add(localStorage.key(place) ?? "");
  } catch {
    // Then only the page itself remembers.
  }
  const wanted = [...all].filter((key) => key.startsWith(PREFIX + beginning) && refused.get(key) !== null);
  return wanted.map((key) => key.slice(PREFIX.length));
}

/** Tells when another tab has changed something under such a key. Returns how to hear no more. */
export function onChangedElsewhere(beginning: string, changed: () => void): () => void {
  const listen = ({ key }: StorageEvent) => {
    if (key === null || key.startsWith(PREFIX + beginning)) changed();
  };
  window.addEventListener("storage", listen);
  return () => window.removeEventListener("storage", listen);
}

/** Whatever was remembered of a session that is no more. */
export function forgetSession(sessionId: string): void {
  const own = [`draft.${sessionId}`, `fresh.${sessionId}`, ...remembered(`outbox.${sessionId}.`).filter(isOwn)];
  for (const key of own) remember(key, null);

  // Ids of messages have no dots, those of sessions may: `a.` is the beginning of `a.b.` too.
  function isOwn(key: string): boolean {
    return key.lastIndexOf(".") === `outbox.${sessionId}`.length;
  }
}

/** Whatever somebody has written and not sent, in all sessions. */
export function forgetMessages(): void {
  for (const key of ["draft.", "fresh.", "outbox."].flatMap(remembered)) remember(key, null);
}

function read(key: string): string | null {
  return refused.get(key) ?? (refused.has(key) ? null : localStorage.getItem(key));
}
