import { useCallback, useEffect, useState } from "react";
import { folds } from "../chat/collapsed";
import { findAgent, useAgents } from "../client/agents";
import { access, useCurrentUser } from "../client/auth";
import { sessionExport } from "../client/sessionExport";
import { SessionList } from "../client/sessionList";
import { useSession } from "../client/useSession";
import { Palette } from "../sessions/Palette";
import { Sidebar } from "../sessions/Sidebar";
import { useShortcuts } from "../ui/shortcuts";
import { alignClock } from "../ui/useNow";
import { Unreachable } from "./Banner";
import { Conversation } from "./Conversation";
import { Drawer } from "./Drawer";
import { NarrowTabs } from "./NarrowTabs";
import { NewSession } from "./NewSession";
import { NotFound } from "./NotFound";
import { useRoute } from "./route";
import { SessionDialogs } from "./SessionDialogs";
import { SessionHeader } from "./SessionHeader";
import { ShortcutsDialog } from "./ShortcutsDialog";
import { SidePanel } from "./SidePanel";
import { useTheme } from "./theme";
import { usesUnderstudy } from "./UnderstudyNotice";
import { LOCAL_SHORTCUTS, useCommands } from "./useCommands";
import { useVisit } from "./useNavigation";
import { usePanes } from "./usePanes";
import { useStopKey } from "./useStopKey";
import { useStoredState } from "./useStoredState";
import { useTitle } from "./useTitle";
import "./app.css";

/** The whole page: conversations on the left, one in the middle, its code, terminal, timeline and files on the right. */
export function App() {
  const route = useRoute();
  const theme = useTheme();
  const { agents, version, error } = useAgents();
  const me = useCurrentUser();
  const [list] = useState(() => new SessionList());
  const { store, live, isMissing, isWaiting } = useSession(route.sessionId);
  const [agent, setAgent] = useStoredState("agent", "");
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [areKeysOpen, setKeysOpen] = useState(false);
  const [isSearching, setSearching] = useState(false);
  const [asked, setAsked] = useState<"rename" | "delete" | null>(null);
  const searchEnd = useCallback(() => setSearching(false), []);

  const runs = live?.view.runs ?? [];
  const newest = runs[runs.length - 1];
  const named = runs.find((one) => one.runId === route.runId);
  const run = named ?? newest;
  const focus = route.item === null || run?.runId !== route.runId ? null : (run?.items[route.item] ?? null);
  const chosen = findAgent(agents, agent);
  const by = live?.info?.agent_type ?? newest?.agent ?? "";
  const panes = usePanes(route.sessionId, newest);
  const visit = useVisit(route, chosen?.name, panes.hold);
  const title = useTitle(list, route.sessionId, live);
  const asksToStop = useStopKey(newest?.endedAt === null ? store : null);

  const isLost = route.runId !== null && live !== null && live.loading === null && named === undefined;
  useEffect(() => {
    if (isLost) store?.note("This link leads to a turn that is not in this conversation.");
  }, [isLost, store]);
  useEffect(() => alignClock(live?.clockSkew ?? 0), [live?.clockSkew]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is looked for belongs to one session
  useEffect(searchEnd, [route.sessionId]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a run that begins, waits for somebody or ends changes the list
  useEffect(() => void list.refresh(), [list, live?.info?.state, live?.info?.run_id, newest?.state]);

  const rename = (wanted: string) => {
    if (route.sessionId === null) return;
    list.rename(route.sessionId, wanted).catch((reason: Error) => store?.note(`Not renamed: ${reason.message}`));
  };
  const [notSignedOut, setNotSignedOut] = useState("");
  const signOut = () => {
    access.leave().catch((reason: Error) => setNotSignedOut(`Not signed out: ${reason.message}`));
  };
  const { commands, bindings } = useCommands({
    onSignOut: me === null ? null : signOut,
    agents,
    live,
    store,
    onNew: visit.begin,
    onAgent: setAgent,
    onPane: panes.show,
    onSide: panes.toggleSide,
    onSearch: () => setSearching(true),
    onFoldAll: (isOpen) => folds.choose(runs, isOpen),
    onKeys: () => setKeysOpen(true),
    onPalette: () => setPaletteOpen(true),
    onRename: () => setAsked("rename"),
    onDelete: () => setAsked("delete"),
    onExport: (form) => route.sessionId !== null && void sessionExport.start(route.sessionId, title, form),
  });
  useShortcuts(bindings);

  const sidebar = (
    <Sidebar
      list={list}
      agents={agents}
      version={version}
      me={me}
      notice={notSignedOut}
      onSignOut={signOut}
      current={route.sessionId}
      theme={theme}
      agent={chosen?.name ?? ""}
      onAgent={setAgent}
      onOpen={visit.open}
      onNew={visit.begin}
      onRemoved={visit.removed}
      onPalette={() => setPaletteOpen(true)}
    />
  );
  const side = live !== null && (panes.isNarrow ? panes.tab !== "chat" : panes.hasSide) && (
    <SidePanel
      runs={runs}
      run={run}
      focus={focus}
      pane={panes.isNarrow && panes.tab !== "chat" ? panes.tab : panes.pane}
      onPane={panes.show}
      onSelect={visit.pick}
      onSelectRun={visit.pickRun}
      {...(panes.isNarrow ? {} : { onClose: panes.toggleSide })}
    />
  );
  return (
    <div className={`app ${side && !panes.isNarrow ? "app-three" : ""}`}>
      {panes.isNarrow ? (
        <Drawer isOpen={visit.isDrawerOpen} onOpenChange={visit.setDrawerOpen}>
          {sidebar}
        </Drawer>
      ) : (
        sidebar
      )}
      <main className="middle">
        <SessionHeader
          live={live}
          isMissing={isMissing}
          title={title}
          agent={by}
          hasSide={panes.hasSide}
          onRename={rename}
          onMenu={() => visit.setDrawerOpen(true)}
          onSearch={() => setSearching(!isSearching)}
          onSide={panes.toggleSide}
        />
        {panes.isNarrow && live !== null && <NarrowTabs tab={panes.tab} onTab={panes.showTab} />}
        {panes.isNarrow && side}
        {route.sessionId === null && (
          <NewSession agents={agents} agent={chosen} trouble={error} onAgent={setAgent} onAsk={visit.ask} />
        )}
        {isWaiting && <Unreachable />}
        {isMissing && <NotFound onNew={visit.begin} />}
        {live !== null && store !== null && (
          <div className="middle-chat" hidden={panes.isNarrow && panes.tab !== "chat"}>
            <Conversation
              key={live.sessionId}
              live={live}
              store={store}
              route={route}
              isSearching={isSearching}
              asksToStop={asksToStop}
              usesUnderstudy={usesUnderstudy(agents.find((one) => one.name === by))}
              onSearchEnd={searchEnd}
              onSelect={visit.pick}
              onAsked={visit.leaveItem}
            />
          </div>
        )}
      </main>
      {!panes.isNarrow && side}
      <Palette open={isPaletteOpen} onOpenChange={setPaletteOpen} list={list} commands={commands} onOpen={visit.open} />
      <SessionDialogs
        list={list}
        store={store}
        title={title}
        asked={asked}
        onClose={() => setAsked(null)}
        onRemoved={visit.removed}
      />
      <ShortcutsDialog open={areKeysOpen} onOpenChange={setKeysOpen} keys={[...bindings, ...LOCAL_SHORTCUTS]} />
    </div>
  );
}
