import { useEffect, useState } from "react";
import type { RunValues } from "../form/agentFields";
import { readStored, writeStored } from "./browserStorage";
import { newId, newMessage } from "./messageSender";
import { saveOutbox } from "./outbox";
import { sessionExists } from "./sessionExists";
import { type LiveSession, SessionStore } from "./sessionStore";
import { Store, useStore } from "./store";

const NO_STORE = new Store<LiveSession | null>(null);

export interface OpenSession {
  readonly store: SessionStore | null;
  readonly live: LiveSession | null;
  /** Whether no session has this id. */
  readonly isMissing: boolean;
  /** Whether the server cannot be reached, so that it is unknown whether the session exists. */
  readonly isWaiting: boolean;
}

/** Opens the session of this id while the component is mounted. */
export function useSession(sessionId: string | null): OpenSession {
  const [opening, setOpening] = useState<{ id: string | null; store: SessionStore | null }>({ id: null, store: null });
  const [isWaiting, setWaiting] = useState(false);
  useEffect(() => {
    setWaiting(false);
    if (sessionId === null) return;
    let store: SessionStore | null = null;
    const abort = new AbortController();
    const agent = readStored<string | null>(`fresh.${sessionId}`, null);
    const open = () => {
      if (abort.signal.aborted) return;
      setWaiting(false);
      store = new SessionStore(sessionId, agent);
      setOpening({ id: sessionId, store });
    };
    // Connecting creates a missing session. Only a session with an unsent first message may be created.
    if (agent !== null) open();
    else
      sessionExists(sessionId, abort.signal, () => setWaiting(true)).then(
        (isThere) => {
          if (isThere) return open();
          setWaiting(false);
          setOpening({ id: sessionId, store: null });
        },
        () => {},
      );
    return () => {
      abort.abort();
      store?.close();
    };
  }, [sessionId]);

  const store = sessionId !== null && opening.id === sessionId ? opening.store : null;
  const live = useStore<LiveSession | null>(store ?? NO_STORE);
  useEffect(() => {
    if (live !== null && live.view.seq > 0) writeStored(`fresh.${live.sessionId}`, null);
  }, [live]);
  return {
    store,
    live,
    isWaiting,
    isMissing: sessionId !== null && opening.id === sessionId && opening.store === null,
  };
}

/** Creates a session id and stores its first message, which is sent when the session is opened. */
export function createSession(text: string, agent: string, values: RunValues = {}): string {
  const sessionId = newId();
  writeStored(`fresh.${sessionId}`, agent);
  saveOutbox(sessionId, [], [newMessage(text, "wait", Date.now(), values)]);
  return sessionId;
}
