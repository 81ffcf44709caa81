import { useEffect, useSyncExternalStore } from "react";
import type { LiveSession } from "../live/session";
import type { SessionList } from "../live/sessionList";

/** What the session is called, in the head of the page and of the window. */
export function useTitle(list: SessionList, sessionId: string | null, live: LiveSession | null): string {
  const entry = () => list.getSnapshot().entries.find((one) => one.session_id === sessionId)?.title ?? "";
  const listed = useSyncExternalStore(list.subscribe, entry);
  const title = listed || live?.info?.title || live?.view.runs[0]?.input.slice(0, 60) || live?.pending[0]?.text || "";
  useEffect(() => {
    document.title = sessionId === null || title === "" ? "Limelight" : `${title} · Limelight`;
  }, [title, sessionId]);
  return title;
}
