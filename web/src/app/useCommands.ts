import {
  ChevronsDownUp,
  ChevronsUpDown,
  Download,
  Keyboard,
  LogOut,
  Moon,
  PanelRight,
  Pencil,
  Plus,
  Search,
  Square,
  SquarePen,
  Sun,
  Trash2,
} from "lucide-react";
import type { LiveSession, SessionStore } from "../client/session";
import type { ExportForm } from "../client/sessionExport";
import type { Command, Shortcut, ShortcutInfo } from "../ui/shortcuts";
import type { AgentInfo } from "../wire/api";
import type { Pane } from "./activePane";
import { PANES } from "./SidePanel";
import { useTheme } from "./theme";

interface Given {
  readonly agents: readonly AgentInfo[];
  readonly live: LiveSession | null;
  readonly store: SessionStore | null;
  onNew(): void;
  onAgent(name: string): void;
  onPane(pane: Pane): void;
  onSide(): void;
  onSearch(): void;
  onFoldAll(open: boolean): void;
  onKeys(): void;
  onPalette(): void;
  onRename(): void;
  onDelete(): void;
  onExport(form: ExportForm): void;
  /** Null where nobody is signed in. */
  readonly onSignOut: (() => void) | null;
}

/** Keys that work in one place only, and are bound there. */
export const LOCAL_SHORTCUTS: readonly ShortcutInfo[] = [
  { keys: "enter", title: "Send, or queue while the agent works", group: "While you write" },
  { keys: "mod+enter", title: "Interrupt the agent and send", group: "While you write" },
  { keys: "shift+enter", title: "New line", group: "While you write" },
  { keys: "up", title: "Bring back your last message", group: "While you write" },
  { keys: "esc", title: "Stop the agent (press it twice)", group: "While the agent works" },
  { keys: "[", title: "The version of the code before", group: "In the code" },
  { keys: "]", title: "The next version of the code", group: "In the code" },
];

/** All that can be done from the palette, and the keys for it. */
export function useCommands(given: Given): { commands: readonly Command[]; bindings: readonly Shortcut[] } {
  const theme = useTheme();
  const hasSession = given.live !== null;
  const newest = given.live?.view.runs[given.live.view.runs.length - 1];
  const isBusy = newest !== undefined && newest.endedAt === null;
  const commands: Command[] = [
    { id: "new", title: "New conversation", keys: "mod+shift+o", icon: Plus, run: given.onNew },
    {
      id: "stop",
      title: "Stop the agent",
      icon: Square,
      disabled: !isBusy,
      run: () => given.store?.stop(),
    },
    {
      id: "search",
      title: "Search in steps and results",
      keys: "/",
      icon: Search,
      disabled: !hasSession,
      run: given.onSearch,
    },
    ...PANES.map(({ id, title, icon }, place) => ({
      id: `pane-${id}`,
      title: `Show ${title.toLowerCase()}`,
      keys: `g ${"ctlf"[place]}`,
      icon,
      disabled: !hasSession,
      run: () => given.onPane(id),
    })),
    {
      id: "side",
      title: "Show or hide the side",
      keys: "mod+b",
      icon: PanelRight,
      disabled: !hasSession,
      run: given.onSide,
    },
    {
      id: "expand",
      title: "Expand all steps",
      keys: "e",
      icon: ChevronsUpDown,
      disabled: !hasSession,
      run: () => given.onFoldAll(true),
    },
    {
      id: "fold",
      title: "Collapse all steps",
      keys: "shift+e",
      icon: ChevronsDownUp,
      disabled: !hasSession,
      run: () => given.onFoldAll(false),
    },
    { id: "rename", title: "Rename this conversation", icon: Pencil, disabled: !hasSession, run: given.onRename },
    {
      id: "export-markdown",
      title: "Export as Markdown",
      icon: Download,
      disabled: !hasSession,
      run: () => given.onExport("markdown"),
    },
    {
      id: "export-records",
      title: "Export the log (JSON lines)",
      icon: Download,
      disabled: !hasSession,
      run: () => given.onExport("jsonl"),
    },
    { id: "delete", title: "Delete this conversation", icon: Trash2, disabled: !hasSession, run: given.onDelete },
    {
      id: "theme",
      title: theme.dark ? "Light colours" : "Dark colours",
      icon: theme.dark ? Sun : Moon,
      run: () => theme.set(theme.dark ? "light" : "dark"),
    },
    ...given.agents.map((agent) => ({
      id: `agent-${agent.name}`,
      title: `New conversation with ${agent.title}`,
      hint: agent.description,
      icon: SquarePen,
      run: () => {
        given.onAgent(agent.name);
        given.onNew();
      },
    })),
    { id: "keys", title: "Keys", keys: "?", icon: Keyboard, run: given.onKeys },
    ...(given.onSignOut === null ? [] : [{ id: "sign-out", title: "Sign out", icon: LogOut, run: given.onSignOut }]),
  ];
  return { commands, bindings: bindingsOf(commands, given) };
}

function bindingsOf(commands: readonly Command[], given: Given): readonly Shortcut[] {
  const own: Shortcut[] = [
    { keys: "mod+k", title: "Conversations and commands", inFields: true, overDialogs: true, run: given.onPalette },
  ];
  for (const { id, title, keys, disabled, run } of commands) {
    // Esc asks before it stops, so it has a listener of its own.
    if (keys === undefined || id === "stop") continue;
    own.push({ keys, title, inFields: keys.startsWith("mod+"), disabled: disabled ?? false, run });
  }
  return own;
}
