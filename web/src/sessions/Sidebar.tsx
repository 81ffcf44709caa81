import { BookOpen, ChevronDown, Command, LogOut, Monitor, Moon, Plus, Search, Sun, X } from "lucide-react";
import { useCallback, useRef, useState, useSyncExternalStore } from "react";
import type { Theme, ThemeChoice } from "../app/theme";
import { sessionExport } from "../client/sessionExport";
import type { SessionList } from "../client/sessionList";
import { Button } from "../ui/Button";
import { Kbd } from "../ui/Kbd";
import { Menu, MenuLabel, MenuRadioGroup, MenuRadioItem } from "../ui/Menu";
import { type AgentInfo, type CurrentUser, type SessionEntry, serverUrl } from "../wire/api";
import { DeleteDialog } from "./SessionDialogs";
import { SessionRows } from "./SessionRows";
import "./sessions.css";

interface AgentMenuProps {
  agents: readonly AgentInfo[];
  agent: string;
  onAgent: (name: string) => void;
}

/** Which agent a new conversation is with. */
export function AgentMenu({ agents, agent, onAgent }: AgentMenuProps) {
  const chosen = agents.find((one) => one.name === agent);
  const title = chosen?.title || agent || "No agent";
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
          <span className="sessions-title">{title}</span>
          <ChevronDown size={14} aria-hidden="true" />
        </Button>
      }
    >
      <MenuLabel>Agent for new conversations</MenuLabel>
      <MenuRadioGroup value={agent} onChange={onAgent}>
        {agents.map((one) => (
          <MenuRadioItem key={one.name} value={one.name} about={one.description}>
            {one.title || one.name}
            <span className="sessions-tag">{one.default ? `${one.framework} · default` : one.framework}</span>
          </MenuRadioItem>
        ))}
      </MenuRadioGroup>
    </Menu>
  );
}

const CHOICES: Record<ThemeChoice, { word: string; icon: typeof Sun }> = {
  system: { word: "As the system", icon: Monitor },
  light: { word: "Light", icon: Sun },
  dark: { word: "Dark", icon: Moon },
};

export function ThemeMenu({ theme }: { theme: Theme }) {
  const { word, icon: Icon } = CHOICES[theme.choice];
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
      <MenuRadioGroup value={theme.choice} onChange={(choice) => theme.set(choice as ThemeChoice)}>
        {Object.entries(CHOICES).map(([choice, { word: one }]) => (
          <MenuRadioItem key={choice} value={choice}>
            {one}
          </MenuRadioItem>
        ))}
      </MenuRadioGroup>
    </Menu>
  );
}

/** How far an export has come, or why it failed; nothing if there is none. */
export function ExportNotice() {
  const state = useSyncExternalStore(sessionExport.subscribe, sessionExport.getSnapshot);
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
          {!state.error && <progress aria-label="Export" value={state.share} max={1} />}
        </div>
      )}
    </div>
  );
}

interface Props {
  list: SessionList;
  agents: readonly AgentInfo[];
  version?: string;
  /** Who is signed in, on a server with keys. */
  me?: CurrentUser | null;
  /** What else went wrong. */
  notice?: string;
  current: string | null;
  /** Who new conversations are with. */
  agent: string;
  theme: Theme;
  onAgent: (name: string) => void;
  onOpen: (id: string) => void;
  onNew: () => void;
  onRemoved: (id: string) => void;
  onPalette: () => void;
  onSignOut?: () => void;
}

/** The left side: all conversations, and what holds for all of them. */
export function Sidebar(props: Props) {
  const {
    list,
    agents,
    version = "",
    me = null,
    onSignOut,
    notice = "",
    current,
    agent,
    theme,
    onAgent,
    onOpen,
    onNew,
    onRemoved,
    onPalette,
  } = props;
  const { entries, q, hasMore, loading, error } = useSyncExternalStore(list.subscribe, list.getSnapshot);
  const [doomed, setDoomed] = useState<SessionEntry | null>(null);
  const [refused, setRefused] = useState("");
  const field = useRef<HTMLInputElement>(null);

  const rename = useCallback(
    (id: string, title: string) => {
      setRefused("");
      list.rename(id, title).catch((reason: Error) => setRefused(`Not renamed: ${reason.message}`));
    },
    [list],
  );
  const remove = (id: string) => {
    setRefused("");
    list.remove(id).then(
      () => onRemoved(id),
      (reason: Error) => setRefused(`Not deleted: ${reason.message}`),
    );
  };
  const clear = () => {
    list.search("");
    field.current?.focus();
  };
  const told = refused || notice || error;

  return (
    <nav className="sessions" aria-label="Conversations">
      <header className="sessions-head">
        <span className="sessions-brand">
          <img src={serverUrl("icon.svg")} alt="" width={20} height={20} />
          Limelight
        </span>
        <div className="sessions-actions">
          <Button className="sessions-new" onClick={onNew}>
            <Plus size={15} aria-hidden="true" />
            New
          </Button>
          <Button variant="quiet" className="sessions-palette" onClick={onPalette}>
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
          current={current}
          hasMore={hasMore}
          onMore={list.more}
          onOpen={onOpen}
          onRename={rename}
          onRemove={setDoomed}
        />
      ) : (
        <p className="sessions-none">
          {loading ? "" : error ? "" : q ? `Nothing is called “${q}”.` : "No conversations yet."}
        </p>
      )}
      <ExportNotice />
      <div role="status">{told && <p className="sessions-notice sessions-bad">{told}</p>}</div>
      <footer className="sessions-foot">
        <AgentMenu agents={agents} agent={agent} onAgent={onAgent} />
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
        <ThemeMenu theme={theme} />
        {me !== null && (
          <Button variant="quiet" aria-label={`Sign out ${me.user}`} title={`Sign out ${me.user}`} onClick={onSignOut}>
            <LogOut size={15} aria-hidden="true" />
          </Button>
        )}
        {version && <span className="sessions-version">{version}</span>}
      </footer>
      <DeleteDialog entry={doomed} onClose={() => setDoomed(null)} onDelete={remove} />
    </nav>
  );
}
