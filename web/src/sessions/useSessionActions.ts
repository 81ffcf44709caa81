import { useMemo } from "react";
import { useNavigation } from "../app/NavigationContext";
import { useStores } from "../app/pageStores";

interface SessionActions {
  rename(sessionId: string, title: string): void;
  remove(sessionId: string): void;
}

/** Functions that rename and delete a session. `report` gets null when an action starts, and the error if it fails. */
export function useSessionActions(report: (error: string | null) => void): SessionActions {
  const { sessions } = useStores();
  const { leaveSession } = useNavigation();
  return useMemo(
    () => ({
      rename: (sessionId, title) => {
        report(null);
        sessions.rename(sessionId, title).catch((reason: Error) => report(`Not renamed: ${reason.message}`));
      },
      remove: (sessionId) => {
        report(null);
        sessions.remove(sessionId).then(
          () => leaveSession(sessionId),
          (reason: Error) => report(`Not deleted: ${reason.message}`),
        );
      },
    }),
    [sessions, leaveSession, report],
  );
}
