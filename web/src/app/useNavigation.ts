import { useCallback, useState } from "react";
import { beginSession } from "../client/useSession";
import type { Item, RunView } from "../log/view";
import { go, type Route } from "./route";

/** The ways from one place of the page to another. */
export function useVisit(route: Route, agent: string | undefined, onPicked: () => void) {
  const { sessionId } = route;
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const open = useCallback((id: string) => {
    setDrawerOpen(false);
    go({ sessionId: id });
  }, []);
  const begin = useCallback(() => {
    setDrawerOpen(false);
    go({});
  }, []);
  const pick = useCallback(
    (run: RunView, item: Item | null) => {
      onPicked();
      go({ sessionId, runId: run.runId, item: item?.index ?? null }, { replace: true });
    },
    [sessionId, onPicked],
  );
  const pickRun = useCallback((run: RunView) => go({ sessionId, runId: run.runId }, { replace: true }), [sessionId]);
  /** Back to the newest, e.g. because the user has asked something. */
  const leaveItem = useCallback(() => go({ sessionId }, { replace: true }), [sessionId]);
  const ask = useCallback(
    (text: string, by = agent) => {
      if (by !== undefined) go({ sessionId: beginSession(text, by) });
    },
    [agent],
  );
  const removed = useCallback(
    (id: string) => {
      if (id === sessionId) go({}, { replace: true });
    },
    [sessionId],
  );
  return { isDrawerOpen, setDrawerOpen, open, begin, pick, pickRun, leaveItem, ask, removed };
}
