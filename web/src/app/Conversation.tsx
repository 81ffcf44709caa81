import { PlugZap } from "lucide-react";
import { memo, useEffect, useState } from "react";
import { Chat } from "../chat/Chat";
import { Composer } from "../chat/Composer";
import { FilterBar } from "../chat/FilterBar";
import { api } from "../client/api";
import type { LiveSession, SessionStore } from "../client/sessionStore";
import { useAgentForm } from "../form/AgentForm";
import { type Filter, NO_FILTER } from "../log/search";
import { isRunning, type RunView } from "../log/viewModel";
import { escapeInvisible } from "../text/invisibleCharacters";
import { Banner } from "../ui/Banner";
import { Button } from "../ui/Button";
import { isOverlayOpen, type ShortcutInfo } from "../ui/useShortcuts";
import { useAgents } from "./AgentsContext";
import { ConnectionBanner } from "./ConnectionBanner";
import { useLayout } from "./LayoutContext";
import { useNavigation } from "./NavigationContext";
import { useCurrentSession } from "./SessionContext";
import { UnderstudyNotice, usesUnderstudy } from "./UnderstudyNotice";

/** Shows the conversation of the session in the URL, with the message field, or why it cannot be shown. */
export function Conversation() {
  const { store, live, isMissing, isWaiting } = useCurrentSession();
  const { isNarrow, tab } = useLayout();
  if (isWaiting) return <Banner icon={PlugZap}>The server cannot be reached; trying again.</Banner>;
  if (isMissing) return <NotFound />;
  if (live === null || store === null) return null;
  return (
    <div className="middle-chat" hidden={isNarrow && tab !== "chat"}>
      <Session key={live.sessionId} live={live} store={store} />
    </div>
  );
}

const Session = memo(function Session({ live, store }: { live: LiveSession; store: SessionStore }) {
  const { newest, agent } = useCurrentSession();
  const { isSearching, setSearching } = useLayout();
  const { clearSelection } = useNavigation();
  const { agents } = useAgents();
  const [filter, setFilter] = useState<Filter>(NO_FILTER);
  const agentInfo = agents.find((one) => one.name === agent);
  const form = useAgentForm(agentInfo, live.view.runs.length === 0 && live.pending.length === 0);
  useEffect(() => {
    if (!isSearching) setFilter(NO_FILTER);
  }, [isSearching]);
  const isBusy = isRunning(newest);
  const confirmsStop = useStopKey(isBusy ? store : null);
  const isEnded = live.connection.kind === "ended";
  return (
    <>
      {isSearching && (
        <FilterBar runs={live.view.runs} filter={filter} onChange={setFilter} onClose={() => setSearching(false)} />
      )}
      <ConnectionBanner live={live} store={store} />
      <Announcer run={newest} />
      <div className="chat">
        {live.loading === null || live.view.seq > 0 || isEnded ? (
          <Chat filter={filter} live={live} store={store} />
        ) : (
          <Loading progress={live.loading} />
        )}
      </div>
      <Composer
        sessionId={live.sessionId}
        isBusy={isBusy}
        isDisabled={isEnded}
        last={lastMessage(newest)}
        confirmsStop={confirmsStop}
        form={form}
        onSend={(text, ifBusy, values) => {
          clearSelection();
          store.ask(text, ifBusy, values);
        }}
        onStop={() => store.stop()}
      >
        {usesUnderstudy(agentInfo) && <UnderstudyNotice />}
      </Composer>
    </>
  );
});

/** Returns the user's last message, or a function that fetches it if the log contains only its beginning. */
function lastMessage(run: RunView | undefined): string | (() => Promise<string>) {
  return run?.inputTruncation ? () => api.text(`runs/${run.runId}/input`) : (run?.input ?? "");
}

const STOP_KEY_MS = 3000;

/** The shortcut that stops the agent, for the list of shortcuts. `useStopKey` handles it. */
export const STOP_SHORTCUT: ShortcutInfo = {
  keys: "esc",
  title: "Stop the agent (press it twice)",
  group: "While the agent works",
};

/** Stops the run when Esc is pressed twice within `STOP_KEY_MS`. Returns true between the two presses. */
function useStopKey(store: SessionStore | null): boolean {
  const [isConfirming, setConfirming] = useState(false);
  useEffect(() => {
    if (store === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let wasPressed = false;
    const confirm = (isPressed: boolean) => {
      clearTimeout(timer);
      wasPressed = isPressed;
      setConfirming(isPressed);
      if (isPressed) timer = setTimeout(() => confirm(false), STOP_KEY_MS);
    };
    const press = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || isOverlayOpen()) return;
      if (wasPressed) store.stop();
      confirm(!wasPressed);
    };
    window.addEventListener("keydown", press);
    return () => {
      clearTimeout(timer);
      setConfirming(false);
      window.removeEventListener("keydown", press);
    };
  }, [store]);
  return isConfirming;
}

/** Announces to screen readers that the agent works, waits for an approval or has ended. */
function Announcer({ run }: { run: RunView | undefined }) {
  return (
    <p className="visually-hidden" role="status">
      {run === undefined ? "" : announcement(run)}
    </p>
  );
}

function announcement(run: RunView): string {
  switch (run.state) {
    case "running":
      return "The agent works.";
    case "waiting":
      return "The agent asks for a decision.";
    case "finished":
      return "The agent has answered.";
    case "failed":
      return `The run failed: ${escapeInvisible(run.failure?.message ?? "")}`;
    case "cancelled":
      return "The agent was stopped.";
  }
}

function Loading({ progress }: { progress: number }) {
  return (
    <div className="loading" role="status">
      <progress value={progress} max={1} aria-label="Loading the conversation" />
      <span>Loading …</span>
    </div>
  );
}

function NotFound() {
  const { newSession } = useNavigation();
  return (
    <div className="missing">
      <h2>Conversation not found</h2>
      <p className="quiet">It was deleted, or it belongs to another server or another user.</p>
      <Button variant="main" onClick={newSession}>
        New conversation
      </Button>
    </div>
  );
}
