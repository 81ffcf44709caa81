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
import { COMPOSER_SHORTCUTS } from "../chat/Composer";
import { useStore } from "../client/store";
import { NEXT_VERSION, PREVIOUS_VERSION } from "../code/codeShortcuts";
import { isRunning } from "../log/viewModel";
import { CommandPalette } from "../sessions/CommandPalette";
import { DeleteDialog, RenameDialog } from "../sessions/SessionDialogs";
import { SESSION_SHORTCUTS } from "../sessions/SessionRows";
import { useSessionActions } from "../sessions/useSessionActions";
import { TERMINAL_SHORTCUTS } from "../terminal/terminalShortcuts";
import { TIMELINE_SHORTCUTS } from "../timeline/timelineShortcuts";
import { Dialog } from "../ui/Dialog";
import { Kbd } from "../ui/Kbd";
import { type Command, type Shortcut, type ShortcutInfo, useShortcuts } from "../ui/useShortcuts";
import { useAccount } from "./AccountContext";
import { useAgents } from "./AgentsContext";
import { STOP_SHORTCUT } from "./Conversation";
import { useLayout } from "./LayoutContext";
import { useNavigation } from "./NavigationContext";
import { useStores } from "./pageStores";
import { useCurrentSession } from "./SessionContext";
import { PANES } from "./SidePanel";

/** The command palette, the shortcuts, and the dialogs that commands open. */
export function Commands() {
  const { openDialogs, setDialogOpen } = useLayout();
  const { openSession } = useNavigation();
  const { sessions } = useStores();
  const { store, live, title, showNotice } = useCurrentSession();
  const { rename, remove } = useSessionActions(showNotice);
  const commands = useCommands();
  const shortcuts = shortcutsOf(commands, () => setDialogOpen("palette", true));
  useShortcuts(shortcuts);
  const entry = store && { session_id: store.sessionId, title, state: live?.info?.state ?? "idle" };
  return (
    <>
      <CommandPalette
        open={openDialogs.has("palette")}
        onOpenChange={(isOpen) => setDialogOpen("palette", isOpen)}
        list={sessions}
        commands={commands}
        onOpen={openSession}
      />
      <RenameDialog
        entry={openDialogs.has("rename") ? entry : null}
        onClose={() => setDialogOpen("rename", false)}
        onRename={rename}
      />
      <DeleteDialog
        entry={openDialogs.has("delete") ? entry : null}
        onClose={() => setDialogOpen("delete", false)}
        onDelete={remove}
      />
      <ShortcutsDialog
        open={openDialogs.has("shortcuts")}
        onOpenChange={(isOpen) => setDialogOpen("shortcuts", isOpen)}
        shortcuts={[...shortcuts, ...LOCAL_SHORTCUTS]}
      />
    </>
  );
}

/** Shortcuts of one part of the page. Each is declared beside the code that handles its keys. */
const LOCAL_SHORTCUTS: readonly ShortcutInfo[] = [
  ...COMPOSER_SHORTCUTS,
  STOP_SHORTCUT,
  PREVIOUS_VERSION,
  NEXT_VERSION,
  ...TERMINAL_SHORTCUTS,
  ...TIMELINE_SHORTCUTS,
  ...SESSION_SHORTCUTS,
];

function useCommands(): readonly Command[] {
  const stores = useStores();
  const { isDark } = useStore(stores.theme);
  const { agents, chooseAgent } = useAgents();
  const { user, signOut } = useAccount();
  const { newSession } = useNavigation();
  const { store, live, runs, newest, title } = useCurrentSession();
  const { setSearching, showPane, toggleSidePanel, setDialogOpen } = useLayout();
  const ofSession = (id: string, name: string, icon: Command["icon"], run: () => void, keys?: string): Command => ({
    id,
    title: name,
    disabled: live === null,
    run,
    ...(icon && { icon }),
    ...(keys && { keys }),
  });
  const exportAs = (form: "markdown" | "jsonl") => () =>
    store && void stores.sessionExport.start(store.sessionId, title, form);
  return [
    { id: "new", title: "New conversation", keys: "mod+shift+o", icon: Plus, run: newSession },
    { id: "stop", title: "Stop the agent", icon: Square, disabled: !isRunning(newest), run: () => store?.stop() },
    ofSession("search", "Search in steps and results", Search, () => setSearching(true), "/"),
    ...PANES.map(({ id, title: name, icon, keys }) =>
      ofSession(`pane-${id}`, `Show ${name.toLowerCase()}`, icon, () => showPane(id), keys),
    ),
    ofSession("side", "Show or hide the side", PanelRight, toggleSidePanel, "mod+b"),
    ofSession("expand", "Expand all steps", ChevronsUpDown, () => stores.chat.setExpanded(runs, true), "e"),
    ofSession("fold", "Collapse all steps", ChevronsDownUp, () => stores.chat.setExpanded(runs, false), "shift+e"),
    ofSession("rename", "Rename this conversation", Pencil, () => setDialogOpen("rename", true)),
    ofSession("export-markdown", "Export as Markdown", Download, exportAs("markdown")),
    ofSession("export-records", "Export the log (JSON lines)", Download, exportAs("jsonl")),
    ofSession("delete", "Delete this conversation", Trash2, () => setDialogOpen("delete", true)),
    {
      id: "theme",
      title: isDark ? "Light colours" : "Dark colours",
      icon: isDark ? Sun : Moon,
      run: () => stores.theme.choose(isDark ? "light" : "dark"),
    },
    ...agents.map((agent) => ({
      id: `agent-${agent.name}`,
      title: `New conversation with ${agent.title}`,
      hint: agent.description,
      icon: SquarePen,
      run: () => {
        chooseAgent(agent.name);
        newSession();
      },
    })),
    { id: "keys", title: "Keys", keys: "?", icon: Keyboard, run: () => setDialogOpen("shortcuts", true) },
    ...(user === null ? [] : [{ id: "sign-out", title: "Sign out", icon: LogOut, run: signOut }]),
  ];
}

function shortcutsOf(commands: readonly Command[], openPalette: () => void): readonly Shortcut[] {
  const shortcuts: Shortcut[] = [
    { keys: "mod+k", title: "Conversations and commands", inFields: true, overDialogs: true, run: openPalette },
  ];
  for (const { title, keys, disabled = false, run } of commands)
    if (keys !== undefined) shortcuts.push({ keys, title, inFields: keys.startsWith("mod+"), disabled, run });
  return shortcuts;
}

interface ShortcutsProps {
  readonly open: boolean;
  onOpenChange(isOpen: boolean): void;
  readonly shortcuts: readonly ShortcutInfo[];
}

/** The dialog that lists all shortcuts by group. */
function ShortcutsDialog({ open, onOpenChange, shortcuts }: ShortcutsProps) {
  const groups = [...new Set(shortcuts.map(groupOf))];
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Keys">
      {groups.map((group) => (
        <section key={group} className="keys-group">
          <h3>{group}</h3>
          <dl>
            {shortcuts
              .filter((one) => groupOf(one) === group)
              .map(({ keys, title }) => (
                <div key={`${keys} ${title}`} className="keys-row">
                  <dt>{title}</dt>
                  <dd>
                    <Kbd keys={keys} />
                  </dd>
                </div>
              ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}

function groupOf({ group = "Anywhere" }: ShortcutInfo): string {
  return group;
}
