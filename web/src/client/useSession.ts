import { useEffect, useState, useSyncExternalStore } from "react";
import { newId } from "./messageSender";
import { saveOutbox } from "./outbox";
import { type LiveSession, SessionStore } from "./session";
import { sessionExists } from "./sessionExists";
import { readStored, writeStored } from "./storage";

const NOTHING = { subscribe: () => () => {}, getSnapshot: () => null };

export interface OpenSession {
  readonly store: SessionStore | null;
  readonly live: LiveSession | null;
  /** Whether there is no session of this id. */
  readonly isMissing: boolean;
  /** Whether the server cannot be reached, so that it is not known if the session exists. */
  readonly isWaiting: boolean;
}

/** Opens the session of this id while the component is mounted. */
export function useSession(sessionId: string | null): OpenSession {
  const [opened, setOpened] = useState<{ id: string | null; store: SessionStore | null }>({ id: null, store: null });
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    setWaiting(false);
    if (sessionId === null) return;
    let store: SessionStore | null = null;
    const leaving = new AbortController();
    const agent = readStored<string | null>(`fresh.${sessionId}`, null);
    const open = () => {
      if (leaving.signal.aborted) return;
      setWaiting(false);
      store = new SessionStore(sessionId, agent);
      setOpened({ id: sessionId, store });
    };
    // Connecting would create a missing session; only a new session with its first message may do that.
    if (agent !== null) open();
    else
      sessionExists(sessionId, leaving.signal, () => setWaiting(true)).then(
        (isThere) => {
          if (isThere) return open();
          setWaiting(false);
          setOpened({ id: sessionId, store: null });
        },
        () => {},
      );
    return () => {
      leaving.abort();
      store?.close();
    };
  }, [sessionId]);

  const store = sessionId !== null && opened.id === sessionId ? opened.store : null;
  const live = useSyncExternalStore<LiveSession | null>(
    (store ?? NOTHING).subscribe,
    (store ?? NOTHING).getSnapshot as () => LiveSession | null,
  );
  useEffect(() => {
    if (live !== null && live.view.seq > 0) writeStored(`fresh.${live.sessionId}`, null);
  }, [live]);
  return { store, live, isWaiting, isMissing: sessionId !== null && opened.id === sessionId && opened.store === null };
}

/** Creates a session with its first message, which is sent when the session is opened. */
export function createSession(text: string, agent: string): string {
  const sessionId = newId();
  writeStored(`fresh.${sessionId}`, agent);
  saveOutbox(sessionId, [], [{ requestId: newId(), text, ifBusy: "wait", at: Date.now(), error: null, runId: null }]);
  return sessionId;
}
