import { BookOpen, ChevronDown, Command, LogOut, Monitor, Moon, Plus, Search, Sun, X } from "lucide-react";
import { useRef, useState } from "react";
import { useAccount } from "../app/AccountContext";
import { useAgents } from "../app/AgentsContext";
import { useLayout } from "../app/LayoutContext";
import { useNavigation } from "../app/NavigationContext";
import { useStores } from "../app/pageStores";
import type { ThemeChoice } from "../app/theme";
import { type AgentInfo, type SessionEntry, serverUrl } from "../client/api";
import { useStore } from "../client/store";
import { Button } from "../ui/Button";
import { Kbd } from "../ui/Kbd";
import { Menu, MenuLabel, MenuRadioGroup, MenuRadioItem } from "../ui/Menu";
import { DeleteDialog } from "./SessionDialogs";
import { SessionRows } from "./SessionRows";
import { useSessionActions } from "./useSessionActions";
import "./sessions.css";

/** The sidebar: the list of sessions, and below it the agent of new sessions, the theme and the sign-out. */
export function Sidebar() {
  const { sessions: list } = useStores();
  const { version } = useAgents();
  const { user, signOut, signOutError } = useAccount();
  const { route, newSession } = useNavigation();
  const { setDialogOpen } = useLayout();
  const { entries, q, hasMore, loading, error } = useStore(list);
  const [sessionToDelete, setSessionToDelete] = useState<SessionEntry | null>(null);
  const [changeError, setChangeError] = useState<string | null>(null);
  const { rename, remove } = useSessionActions(setChangeError);
  const field = useRef<HTMLInputElement>(null);

  const clear = () => {
    list.search("");
    field.current?.focus();
  };
  const notice = changeError || signOutError || error;

  return (
    <nav className="sessions" aria-label="Conversations">
      <header className="sessions-head">
        <span className="sessions-brand">
          <img src={serverUrl("icon.svg")} alt="" width={20} height={20} />
          Limelight
        </span>
        <div className="sessions-actions">
          <Button className="sessions-new" onClick={newSession}>
            <Plus size={15} aria-hidden="true" />
            New
          </Button>
          <Button variant="quiet" className="sessions-palette" onClick={() => setDialogOpen("palette", true)}>
            <Command size={15} aria-hidden="true" />
            <span className="visually-hidden">Search and commands</span>
            <Kbd keys="mod+k" />
          </Button>
        </div>
        {/* biome-ignore lint/a11y/useSemanticElements: a search element is not yet in all browsers */}
        <div className="sessions-search" role="search">
          <Search size={14} aria-hidden="true" />
          <input
            ref={field}
            type="text"
            aria-label="Search conversations"
            placeholder="Search"
            value={q}
            onChange={(event) => list.search(event.target.value)}
            onKeyDown={(event) => {
              if (event.key !== "Escape" || q === "") return;
              event.preventDefault();
              clear();
            }}
          />
          {q && (
            <Button variant="quiet" aria-label="Clear the search" onClick={clear}>
              <X size={14} aria-hidden="true" />
            </Button>
          )}
        </div>
      </header>
      {entries.length > 0 ? (
        <SessionRows
          entries={entries}
          current={route.sessionId}
          hasMore={hasMore}
          onMore={list.more}
          onRename={rename}
          onRemove={setSessionToDelete}
        />
      ) : (
        <p className="sessions-none">
          {loading || error ? "" : q ? `Nothing is called “${q}”.` : "No conversations yet."}
        </p>
      )}
      <ExportNotice />
      <div role="status">{notice && <p className="sessions-notice sessions-bad">{notice}</p>}</div>
      <footer className="sessions-foot">
        <AgentMenu />
        <span className="sessions-gap" />
        <a
          className="button button-quiet"
          href={serverUrl("docs")}
          target="_blank"
          rel="noreferrer"
          aria-label="Documentation"
          title={version ? `Documentation · Limelight ${version}` : "Documentation"}
        >
          <BookOpen size={15} aria-hidden="true" />
        </a>
        <ThemeMenu />
        {user !== null && (
          <Button
            variant="quiet"
            aria-label={`Sign out ${user.user}`}
            title={`Sign out ${user.user}`}
            onClick={signOut}
          >
            <LogOut size={15} aria-hidden="true" />
          </Button>
        )}
        {version && <span className="sessions-version">{version}</span>}
      </footer>
      <DeleteDialog entry={sessionToDelete} onClose={() => setSessionToDelete(null)} onDelete={remove} />
    </nav>
  );
}

/** The menu that chooses the agent of new sessions. */
function AgentMenu() {
  const { agents, agent, chooseAgent } = useAgents();
  const title = agent?.title || agent?.name || "No agent";
  return (
    <Menu
      label="Agent for new conversations"
      side="top"
      trigger={
        <Button
          variant="quiet"
          className="sessions-agent"
          aria-label={`Agent for new conversations: ${title}`}
          disabled={agents.length === 0}
        >
          <span className="sessions-title ellipsis">{title}</span>
          <ChevronDown size={14} aria-hidden="true" />
        </Button>
      }
    >
      <MenuLabel>Agent for new conversations</MenuLabel>
      <MenuRadioGroup value={agent?.name ?? ""} onValueChange={chooseAgent}>
        {agents.map((one) => (
          <MenuRadioItem key={one.name} value={one.name} about={one.description}>
            {one.title || one.name}
            <span className="sessions-tag">{agentTags(one).join(" · ")}</span>
          </MenuRadioItem>
        ))}
      </MenuRadioGroup>
    </Menu>
  );
}

/** Returns labels of an agent: its framework, its sandbox and why not a stronger one, and whether it is the default. */
function agentTags(agent: AgentInfo): string[] {
  const level = agent.sandbox === "none" ? "no sandbox" : agent.sandbox ? `sandbox: ${agent.sandbox}` : "";
  const sandbox = agent.sandbox_reason ? `${level} (${agent.sandbox_reason})` : level;
  return [agent.framework, sandbox, agent.default ? "default" : ""].filter((tag) => tag !== "");
}

const CHOICES: Record<ThemeChoice, { word: string; icon: typeof Sun }> = {
  system: { word: "As the system", icon: Monitor },
  light: { word: "Light", icon: Sun },
  dark: { word: "Dark", icon: Moon },
};

function ThemeMenu() {
  const { theme } = useStores();
  const { choice: current } = useStore(theme);
  const { word, icon: Icon } = CHOICES[current];
  return (
    <Menu
      label="Light or dark"
      side="top"
      align="end"
      trigger={
        <Button variant="quiet" aria-label={`Light or dark: ${word}`} title={`Light or dark: ${word}`}>
          <Icon size={15} aria-hidden="true" />
        </Button>
      }
    >
      <MenuRadioGroup value={current} onValueChange={(choice) => theme.choose(choice as ThemeChoice)}>
        {Object.entries(CHOICES).map(([choice, { word: one }]) => (
          <MenuRadioItem key={choice} value={choice}>
            {one}
          </MenuRadioItem>
        ))}
      </MenuRadioGroup>
    </Menu>
  );
}

/** Shows the progress or the error of the current export. */
function ExportNotice() {
  const { sessionExport } = useStores();
  const state = useStore(sessionExport);
  return (
    <div role="status">
      {state && (
        <div className={`sessions-notice ${state.error ? "sessions-bad" : ""}`}>
          <span className="sessions-notice-words">
            {state.error ? `Export failed: ${state.error}` : `Exporting “${state.title}”`}
          </span>
          <Button
            variant="quiet"
            aria-label={state.error ? "Dismiss" : "Stop the export"}
            onClick={sessionExport.cancel}
          >
            <X size={14} aria-hidden="true" />
          </Button>
          {!state.error && <progress aria-label="Export" value={state.progress} max={1} />}
        </div>
      )}
    </div>
  );
}
