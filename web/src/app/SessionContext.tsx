import { createContext, type ReactNode, useCallback, useEffect, useMemo, useSyncExternalStore } from "react";
import type { LiveSession } from "../client/sessionStore";
import { type OpenSession, useSession } from "../client/useSession";
import type { Item, RunView } from "../log/viewModel";
import { useRequiredContext } from "../ui/hooks";
import { useNavigation } from "./NavigationContext";
import { useStores } from "./pageStores";

/** The session that the URL names, with its selected run and item. */
interface CurrentSession extends OpenSession {
  readonly runs: readonly RunView[];
  readonly newest: RunView | undefined;
  /** The run that the URL names, otherwise the newest run. */
  readonly run: RunView | undefined;
  /** The item that the URL names. */
  readonly focus: Item | null;
  readonly title: string;
  /** Name of the session's agent; "" if it is not known. */
  readonly agent: string;
  /** Shows a message in the conversation; null hides it. */
  showNotice(notice: string | null): void;
}

export const SessionContext = createContext<CurrentSession | null>(null);

export const useCurrentSession = () => useRequiredContext(SessionContext);

const NO_RUNS: readonly RunView[] = [];

export function SessionProvider({ children }: { children: ReactNode }) {
  const { route } = useNavigation();
  const { sessions, clock } = useStores();
  const open = useSession(route.sessionId);
  const { store, live } = open;
  const title = useTitle(route.sessionId, live);

  const runs = live?.view.runs ?? NO_RUNS;
  const newest = runs.at(-1);
  const linked = runs.find((one) => one.runId === route.runId);
  const run = linked ?? newest;
  const focus = (route.item === null ? null : linked?.items[route.item]) ?? null;
  const agent = live?.info?.agent_type ?? newest?.agent ?? "";

  const isLinkBroken = route.runId !== null && live !== null && live.loading === null && linked === undefined;
  const showNotice = useCallback((notice: string | null) => store?.showNotice(notice), [store]);
  useEffect(() => {
    if (isLinkBroken) showNotice("This link leads to a turn that is not in this conversation.");
  }, [isLinkBroken, showNotice]);
  const skew = live?.clockSkew ?? 0;
  useEffect(() => clock.setSkew(skew), [clock, skew]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list changes when a run starts, waits or ends
  useEffect(() => void sessions.refresh(), [sessions, live?.info?.state, live?.info?.run_id, newest?.state]);

  const { isMissing, isWaiting } = open;
  const session = useMemo<CurrentSession>(
    () => ({ store, live, isMissing, isWaiting, runs, newest, run, focus, title, agent, showNotice }),
    [store, live, isMissing, isWaiting, runs, newest, run, focus, title, agent, showNotice],
  );
  return <SessionContext value={session}>{children}</SessionContext>;
}

/** The title of a session: its title on the server, otherwise the text of its first message; "" on the start page. */
function useTitle(sessionId: string | null, live: LiveSession | null): string {
  const { sessions } = useStores();
  const listed = useSyncExternalStore(sessions.subscribe, () => sessions.titleOf(sessionId));
  return listed || live?.info?.title || live?.view.runs[0]?.input.slice(0, 60) || live?.pending[0]?.text || "";
}
