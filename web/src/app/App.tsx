import { useCallback, useEffect, useMemo, useState } from "react";
import { folds } from "../chat/folds";
import { agentNamed, useAgents } from "../live/agents";
import { SessionList } from "../live/sessionList";
import { recall, remember } from "../live/storage";
import { beginSession, useSession } from "../live/useSession";
import type { Item, RunView } from "../log/view";
import { alignClock } from "../parts/useNow";
import { Palette } from "../sessions/Palette";
import { Sidebar } from "../sessions/Sidebar";
import { Conversation } from "./Conversation";
import { Drawer } from "./Drawer";
import { KeysDialog } from "./KeysDialog";
import { useKeys } from "./keys";
import { Missing } from "./Missing";
import { NarrowTabs } from "./NarrowTabs";
import { go, useRoute } from "./route";
import { SessionHead } from "./SessionHead";
import { type Pane, Side, useActivePane } from "./Side";
import { Start } from "./Start";
import { useTheme } from "./theme";
import { FIELD_KEYS, useCommands } from "./useCommands";
import { useMedia } from "./useMedia";
import { useStopKey } from "./useStopKey";
import "./app.css";

/** The whole page: conversations on the left, one in the middle, its code, terminal, timeline and files on the right. */
export function App() {
  const route = useRoute();
  const theme = useTheme();
  const { agents, version } = useAgents();
  const [list] = useState(() => new SessionList());
  const { store, live, isMissing } = useSession(route.sessionId);
  const [agent, setAgent] = useRemembered("agent", "");
  const [hasSide, setHasSide] = useRemembered("side", true);
  const [picked, setPicked] = useState<Pane | null>(null);
  const [narrowTab, setNarrowTab] = useState<Pane | "chat">("chat");
  const [isDrawerOpen, setDrawerOpen] = useState(false);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [areKeysOpen, setKeysOpen] = useState(false);
  const [isSearching, setSearching] = useState(false);
  const isNarrow = useMedia("(max-width: 899px)");

  const chosen = agentNamed(agents, agent);
  const runs = live?.view.runs ?? [];
  const run = runs.find((one) => one.runId === route.runId) ?? runs[runs.length - 1];
  const newest = runs[runs.length - 1];
  const focus = route.item === null || run?.runId !== route.runId ? null : (run?.items[route.item] ?? null);
  const active = useActivePane(newest);
  const pane = picked ?? active;
  const asksToStop = useStopKey(newest?.endedAt === null ? store : null);

  useEffect(() => alignClock(live?.clockSkew ?? 0), [live?.clockSkew]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another session is shown from its beginning
  useEffect(() => {
    setSearching(false);
    setNarrowTab("chat");
    setPicked(null);
  }, [route.sessionId]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a run that begins or ends changes the list
  useEffect(() => void list.refresh(), [list, live?.info?.state, live?.info?.run_id]);
  useEffect(() => () => list.close(), [list]);

  const entry = useEntry(list, route.sessionId);
  const title = entry?.title || live?.info?.title || newest?.input.slice(0, 60) || "";
  useEffect(() => {
    document.title = route.sessionId === null || title === "" ? "Limelight" : `${title} · Limelight`;
  }, [title, route.sessionId]);

  const open = useCallback((sessionId: string) => {
    setDrawerOpen(false);
    go({ sessionId });
  }, []);
  const begin = useCallback(() => {
    setDrawerOpen(false);
    go({});
  }, []);
  const pick = useCallback(
    (of: RunView, item: Item) => {
      setNarrowTab("chat");
      go({ sessionId: route.sessionId, runId: of.runId, item: item.index }, { replace: true });
    },
    [route.sessionId],
  );
  const pickRun = useCallback(
    (of: RunView) => go({ sessionId: route.sessionId, runId: of.runId }, { replace: true }),
    [route.sessionId],
  );
  const pickPane = useCallback(
    (wanted: Pane) => {
      setPicked(wanted);
      remember("pane", wanted);
      if (isNarrow) setNarrowTab(wanted);
      else setHasSide(true);
    },
    [isNarrow, setHasSide],
  );
  const ask = useCallback(
    (text: string, by?: string) => {
      const name = by ?? chosen?.name;
      if (name !== undefined) go({ sessionId: beginSession(text, name) });
    },
    [chosen?.name],
  );
  const removed = useCallback(
    (sessionId: string) => {
      if (sessionId === route.sessionId) go({}, { replace: true });
    },
    [route.sessionId],
  );
  const searchEnd = useCallback(() => setSearching(false), []);

  const { commands, bindings } = useCommands({
    agents,
    list,
    live,
    store,
    title,
    onNew: begin,
    onAgent: setAgent,
    onPane: pickPane,
    onSide: () => setHasSide(!hasSide),
    onSearch: () => setSearching(true),
    onFoldAll: (isOpen) => folds.choose(runs, isOpen),
    onKeys: () => setKeysOpen(true),
    onPalette: () => setPaletteOpen(true),
    onRemoved: removed,
  });
  useKeys(bindings);

  const sidebar = useMemo(
    () => (
      <Sidebar
        list={list}
        agents={agents}
        version={version}
        current={route.sessionId}
        theme={theme}
        agent={chosen?.name ?? ""}
        onAgent={setAgent}
        onOpen={open}
        onNew={begin}
        onRemoved={removed}
        onPalette={() => setPaletteOpen(true)}
      />
    ),
    [list, agents, version, route.sessionId, theme, chosen?.name, setAgent, open, begin, removed],
  );
  const side = live !== null && (!isNarrow ? hasSide : narrowTab !== "chat") && (
    <Side
      runs={runs}
      run={run}
      focus={focus}
      pane={isNarrow && narrowTab !== "chat" ? narrowTab : pane}
      onPane={pickPane}
      onPick={pick}
      onPickRun={pickRun}
      {...(isNarrow ? {} : { onClose: () => setHasSide(false) })}
    />
  );
  return (
    <div className={`app ${side && !isNarrow ? "app-three" : ""}`}>
      {isNarrow ? (
        <Drawer isOpen={isDrawerOpen} onOpenChange={setDrawerOpen}>
          {sidebar}
        </Drawer>
      ) : (
        sidebar
      )}
      <main className="middle">
        <SessionHead
          live={live}
          title={title}
          agent={live?.info?.agent_type ?? newest?.agent ?? ""}
          hasSide={hasSide}
          onRename={(wanted) => route.sessionId !== null && void list.rename(route.sessionId, wanted)}
          onMenu={() => setDrawerOpen(true)}
          onSearch={() => setSearching(!isSearching)}
          onSide={() => setHasSide(!hasSide)}
        />
        {isNarrow && live !== null && <NarrowTabs tab={narrowTab} onTab={setNarrowTab} />}
        {isNarrow && side}
        {route.sessionId === null && <Start agents={agents} agent={chosen} onAgent={setAgent} onAsk={ask} />}
        {isMissing && <Missing onNew={begin} />}
        {live !== null && store !== null && (
          <div className="middle-chat" hidden={isNarrow && narrowTab !== "chat"}>
            <Conversation
              live={live}
              store={store}
              route={route}
              isSearching={isSearching}
              asksToStop={asksToStop}
              onSearchEnd={searchEnd}
              onPick={pick}
            />
          </div>
        )}
      </main>
      {!isNarrow && side}
      <Palette open={isPaletteOpen} onOpenChange={setPaletteOpen} list={list} commands={commands} onOpen={open} />
      <KeysDialog open={areKeysOpen} onOpenChange={setKeysOpen} keys={[...bindings, ...FIELD_KEYS]} />
    </div>
  );
}

/** A choice that outlives a reload. */
function useRemembered<T>(key: string, first: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => recall(key, first));
  const choose = useCallback(
    (next: T) => {
      remember(key, next);
      setValue(next);
    },
    [key],
  );
  return [value, choose];
}

function useEntry(list: SessionList, sessionId: string | null) {
  const [, redraw] = useState(0);
  useEffect(() => list.subscribe(() => redraw((count) => count + 1)), [list]);
  return list.getSnapshot().entries.find((entry) => entry.session_id === sessionId);
}
