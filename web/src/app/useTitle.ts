import { useEffect, useSyncExternalStore } from "react";
import type { LiveSession } from "../client/session";
import type { SessionList } from "../client/sessionList";

/** Seen in the browser's tab while the user is elsewhere. */
const MARKS: Record<string, string> = { running: "● ", waiting: "? " };

/** Titles as they were last listed: a list that is filtered does not know all of them. */
const known = new Map<string, string>();

/** What the session is called, in the head of the page and of the window. */
export function useTitle(list: SessionList, sessionId: string | null, live: LiveSession | null): string {
  const entry = () => {
    if (sessionId === null) return "";
    const title = list.getSnapshot().entries.find((one) => one.session_id === sessionId)?.title;
    if (title) known.set(sessionId, title);
    return known.get(sessionId) ?? "";
  };
  const listed = useSyncExternalStore(list.subscribe, entry);
  const title = listed || live?.info?.title || live?.view.runs[0]?.input.slice(0, 60) || live?.pending[0]?.text || "";
  const mark = MARKS[live?.view.runs[live.view.runs.length - 1]?.state ?? ""] ?? "";
  useEffect(() => {
    document.title = sessionId === null || title === "" ? "Limelight" : `${mark}${title} · Limelight`;
  }, [title, mark, sessionId]);
  return title;
}
