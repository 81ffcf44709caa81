import { Clock, Code, Files, MessageSquare, SquareTerminal, X } from "lucide-react";
import { Tabs } from "radix-ui";
import { lazy, Suspense } from "react";
import type { Item } from "../log/viewModel";
import { Button } from "../ui/Button";
import type { Pane } from "./activePane";
import { ErrorBoundary } from "./ErrorBoundary";
import { useLayout } from "./LayoutContext";
import { useNavigation } from "./NavigationContext";
import { retryImport } from "./retryImport";
import { useCurrentSession } from "./SessionContext";

const CodePane = lazy(() => retryImport(() => import("../code/CodePane")));
const TerminalPane = lazy(() => retryImport(() => import("../terminal/TerminalPane")));
const TimelinePane = lazy(() => retryImport(() => import("../timeline/TimelinePane")));
const FilesPane = lazy(() => retryImport(() => import("../files/FilesPane")));

interface PaneTab {
  readonly id: Pane;
  readonly title: string;
  readonly icon: typeof Code;
  /** The keyboard shortcut that shows the pane. */
  readonly keys: string;
}

/** The panes of the side panel, in the order of their tabs. */
export const PANES: readonly PaneTab[] = [
  { id: "code", title: "Code", icon: Code, keys: "g c" },
  { id: "terminal", title: "Terminal", icon: SquareTerminal, keys: "g t" },
  { id: "timeline", title: "Timeline", icon: Clock, keys: "g l" },
  { id: "files", title: "Files", icon: Files, keys: "g f" },
];

/** The side panel with the code, terminal, timeline and files panes. */
export function SidePanel() {
  const { isNarrow, tab, pane: chosen, showPane, toggleSidePanel } = useLayout();
  const pane = isNarrow && tab !== "chat" ? tab : chosen;
  return (
    <Tabs.Root className="side" value={pane} onValueChange={(value) => showPane(value as Pane)}>
      <header className="side-head">
        <Tabs.List className="side-tabs" aria-label="Panes">
          {PANES.map(({ id, title, icon: Icon }) => (
            <Tabs.Trigger key={id} value={id} className="side-tab">
              <Icon size={15} aria-hidden="true" />
              {title}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {!isNarrow && (
          <Button variant="quiet" aria-label="Hide this side" title="Hide this side" onClick={toggleSidePanel}>
            <X size={15} aria-hidden="true" />
          </Button>
        )}
      </header>
      <Tabs.Content value={pane} className="side-body" tabIndex={-1}>
        <ErrorBoundary key={pane}>
          <Suspense fallback={<p className="quiet side-wait">Loading …</p>}>
            <PaneBody pane={pane} />
          </Suspense>
        </ErrorBoundary>
      </Tabs.Content>
    </Tabs.Root>
  );
}

function PaneBody({ pane }: { pane: Pane }) {
  const { runs, run, focus } = useCurrentSession();
  const { showPane, selectItem } = useLayout();
  const { select } = useNavigation();
  const selectInRun = (item: Item) => {
    const owner = runs.find((one) => item.key.startsWith(`${one.runId}/`));
    if (owner !== undefined) selectItem(owner, item);
  };
  switch (pane) {
    case "code":
      return (
        <CodePane
          runs={runs}
          focus={focus?.kind === "tool" ? focus : null}
          onSelect={selectInRun}
          onTerminal={() => showPane("terminal")}
        />
      );
    case "terminal":
      return <TerminalPane runs={runs} />;
    case "timeline":
      return run === undefined ? (
        <p className="quiet side-wait">When the agent works, its steps appear here over time.</p>
      ) : (
        <TimelinePane runs={runs} run={run} focus={focus} onSelect={selectInRun} onSelectRun={select} />
      );
    case "files":
      return <FilesPane runs={runs} onSelect={selectInRun} />;
  }
}

/** The tabs that select the chat or a pane on a narrow screen. */
export function NarrowTabs() {
  const { tab, showTab } = useLayout();
  const tabs = [{ id: "chat" as const, title: "Chat", icon: MessageSquare }, ...PANES];
  return (
    <nav className="narrow-tabs" aria-label="Parts of the conversation">
      {tabs.map(({ id, title, icon: Icon }) => (
        <button
          key={id}
          type="button"
          className="side-tab"
          data-state={tab === id ? "active" : "inactive"}
          aria-current={tab === id ? "page" : undefined}
          onClick={() => showTab(id)}
        >
          <Icon size={15} aria-hidden="true" />
          <span>{title}</span>
        </button>
      ))}
    </nav>
  );
}
