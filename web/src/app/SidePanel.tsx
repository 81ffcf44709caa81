import { Clock, Code, Files, SquareTerminal, X } from "lucide-react";
import { Tabs } from "radix-ui";
import { lazy, type ReactNode, Suspense, useRef } from "react";
import { readStored } from "../client/storage";
import type { Item, RunView } from "../log/view";
import { Button } from "../ui/Button";
import { activePane, type Pane } from "./activePane";
import { ErrorBoundary } from "./ErrorBoundary";

const CodePane = lazy(() => import("../code/CodePane"));
const TerminalPane = lazy(() => import("../terminal/TerminalPane"));
const TimelinePane = lazy(() => import("../timeline/TimelinePane"));
const FilesPane = lazy(() => import("../files/FilesPane"));

export const PANES: readonly { readonly id: Pane; readonly title: string; readonly icon: typeof Code }[] = [
  { id: "code", title: "Code", icon: Code },
  { id: "terminal", title: "Terminal", icon: SquareTerminal },
  { id: "timeline", title: "Timeline", icon: Clock },
  { id: "files", title: "Files", icon: Files },
];

interface Props {
  readonly runs: readonly RunView[];
  /** The run that is looked at: the one in the address, or the newest. */
  readonly run: RunView | undefined;
  readonly focus: Item | null;
  readonly pane: Pane;
  onPane(pane: Pane): void;
  onSelect(run: RunView, item: Item): void;
  onSelectRun(run: RunView): void;
  onClose?(): void;
}

/** The right side: what the agent makes and does, each in the form that fits it. */
export function SidePanel(props: Props) {
  const { runs, run, focus, pane, onPane, onSelect, onClose } = props;
  const pick = (item: Item) => {
    const owner = runs.find((one) => item.key.startsWith(`${one.runId}/`));
    if (owner !== undefined) onSelect(owner, item);
  };
  return (
    <Tabs.Root className="side" value={pane} onValueChange={(value) => onPane(value as Pane)}>
      <header className="side-head">
        <Tabs.List className="side-tabs" aria-label="Panes">
          {PANES.map(({ id, title, icon: Icon }) => (
            <Tabs.Trigger key={id} value={id} className="side-tab">
              <Icon size={15} aria-hidden="true" />
              {title}
            </Tabs.Trigger>
          ))}
        </Tabs.List>
        {onClose && (
          <Button variant="quiet" aria-label="Hide this side" title="Hide this side" onClick={onClose}>
            <X size={15} aria-hidden="true" />
          </Button>
        )}
      </header>
      <Tabs.Content value={pane} className="side-body" tabIndex={-1}>
        <ErrorBoundary key={pane}>
          <Suspense fallback={<p className="quiet side-wait">Loading …</p>}>
            {shown(pane, runs, run, focus, pick, props.onSelectRun, onPane)}
          </Suspense>
        </ErrorBoundary>
      </Tabs.Content>
    </Tabs.Root>
  );
}

function shown(
  pane: Pane,
  runs: readonly RunView[],
  run: RunView | undefined,
  focus: Item | null,
  pick: (item: Item) => void,
  pickRun: (run: RunView) => void,
  onPane: (pane: Pane) => void,
): ReactNode {
  switch (pane) {
    case "code":
      return (
        <CodePane
          runs={runs}
          focus={focus?.kind === "tool" ? focus : null}
          onSelect={pick}
          onTerminal={() => onPane("terminal")}
        />
      );
    case "terminal":
      return <TerminalPane runs={runs} />;
    case "timeline":
      return run === undefined ? (
        <p className="quiet side-wait">When the agent works, its steps appear here over time.</p>
      ) : (
        <TimelinePane runs={runs} run={run} focus={focus} onSelect={pick} onSelectRun={pickRun} />
      );
    case "files":
      return <FilesPane runs={runs} onSelect={pick} />;
  }
}

/** Which pane to show by itself. Once the user has picked one, theirs stays. */
export function useActivePane(run: RunView | undefined): Pane {
  const last = useRef<Pane>(readStored<Pane>("pane", "timeline"));
  if (run !== undefined) last.current = activePane(run) ?? last.current;
  return last.current;
}
