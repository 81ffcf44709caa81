import { ChevronLeft, ChevronRight } from "lucide-react";
import { memo, useCallback, useMemo, useState } from "react";
import { type Item, isRunning, type RunView } from "../log/viewModel";
import { escapeInvisible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { useNow } from "../ui/clock";
import { AgentTable } from "./AgentTable";
import { summarize } from "./agentSummary";
import { Chart } from "./Chart";
import { layout, type RowCache, type TimelineRow } from "./layout";
import "./timeline.css";

interface Snapshot {
  readonly run: RunView;
  readonly now: number;
}

/** Number of items above which a run is laid out only once a second. */
const LONG_RUN_ITEMS = 2000;
const LONG_RUN_INTERVAL_MS = 1000;

/** Returns the run as it was at the last tick of the clock, because the chart need not change with each token. */
function useThrottledRun(run: RunView): Snapshot {
  const running = isRunning(run);
  const now = useNow(running);
  const [snapshot, setSnapshot] = useState<Snapshot>({ run, now });
  const isOutdated = snapshot.run !== run && (!running || snapshot.run.runId !== run.runId);
  const interval = running && run.items.length > LONG_RUN_ITEMS ? LONG_RUN_INTERVAL_MS : 1;
  if (Math.abs(now - snapshot.now) < interval && !isOutdated) return snapshot;
  const next = { run, now };
  setSnapshot(next);
  return next;
}

interface TurnPickerProps {
  readonly runs: readonly RunView[];
  readonly run: RunView;
  readonly onSelectRun: (run: RunView) => void;
}

const MAX_TITLE_LENGTH = 60;
/** Number of turns that the menu lists before and after the shown turn. */
const LISTED_TURNS = 100;

/** The menu that chooses the shown turn of the session. */
const TurnPicker = memo(function TurnPicker({ runs, run, onSelectRun }: TurnPickerProps) {
  const at = runs.findIndex((one) => one.runId === run.runId);
  const first = Math.max(0, at - LISTED_TURNS);
  const go = (to: number) => {
    const next = runs[to];
    if (next) onSelectRun(next);
  };
  return (
    <div className="timeline-turns">
      <Button
        variant="quiet"
        aria-label="Turn before"
        title="Turn before"
        disabled={at <= 0}
        onClick={() => go(at - 1)}
      >
        <ChevronLeft size={15} aria-hidden="true" />
      </Button>
      <select aria-label="Turn" value={at} onChange={(event) => go(Number(event.target.value))}>
        {runs.slice(first, at + LISTED_TURNS + 1).map((one, index) => (
          <option key={one.runId} value={first + index}>
            {`Turn ${one.turn || first + index + 1} · ${escapeInvisible(one.input.slice(0, MAX_TITLE_LENGTH)).replace(/\s+/g, " ")}`}
          </option>
        ))}
      </select>
      <Button
        variant="quiet"
        aria-label="Turn after"
        title="Turn after"
        disabled={at >= runs.length - 1}
        onClick={() => go(at + 1)}
      >
        <ChevronRight size={15} aria-hidden="true" />
      </Button>
    </div>
  );
});

interface LegendEntry {
  readonly label: string;
  readonly className: string;
  readonly appliesTo: (row: TimelineRow) => boolean;
}

const wasStopped = (row: TimelineRow) => row.state === "stopped" || row.state === "rejected";
const hasWait = (row: TimelineRow) => row.parts.some((part) => part.kind === "wait");

const ENTRIES: readonly LegendEntry[] = [
  { label: "Agent", className: "timeline-bar-agent", appliesTo: (row) => row.kind === "agent" },
  { label: "Step", className: "timeline-bar-step", appliesTo: (row) => row.kind === "step" },
  { label: "Thinking", className: "timeline-bar-thought", appliesTo: (row) => row.kind === "thought" },
  { label: "Text", className: "timeline-bar-text", appliesTo: (row) => row.kind === "text" },
  { label: "Tool", className: "timeline-bar-tool", appliesTo: (row) => row.kind === "tool" },
  {
    label: "Writing arguments",
    className: "timeline-bar-tool timeline-part-write",
    appliesTo: (row) => row.parts.some((part) => part.kind === "write"),
  },
  { label: "Waiting for you", className: "timeline-bar-tool timeline-part-wait", appliesTo: hasWait },
  { label: "Failed", className: "timeline-bar-tool timeline-is-failed", appliesTo: (row) => row.state === "failed" },
  {
    label: "No result seen",
    className: "timeline-bar-tool timeline-is-unseen",
    appliesTo: (row) => row.state === "unseen",
  },
  { label: "Stopped", className: "timeline-bar-tool timeline-is-stopped", appliesTo: wasStopped },
];

/** The legend: the meaning of each kind of bar that the chart contains. */
const Legend = memo(function Legend({ rows }: { rows: readonly TimelineRow[] }) {
  return (
    <ul className="timeline-legend" aria-label="Legend">
      {ENTRIES.filter((entry) => rows.some(entry.appliesTo)).map((entry) => (
        <li key={entry.label}>
          <span className="timeline-swatch" aria-hidden="true">
            <span className={`timeline-bar ${entry.className}`} />
          </span>
          {entry.label}
        </li>
      ))}
    </ul>
  );
});

interface Props {
  readonly runs: readonly RunView[];
  readonly run: RunView;
  readonly focus: Item | null;
  readonly onSelect: (item: Item) => void;
  readonly onSelectRun: (run: RunView) => void;
}

/** The timeline pane: a chart of a run's agents, steps and calls over time, and their tokens. */
const TimelinePane = memo(function TimelinePane({ runs, run, focus, onSelect, onSelectRun }: Props) {
  const snapshot = useThrottledRun(run);
  const [cache] = useState<RowCache>(() => new WeakMap());
  const timeline = useMemo(() => layout(snapshot.run, snapshot.now, cache), [snapshot, cache]);
  const summary = useMemo(() => summarize(snapshot.run, snapshot.now), [snapshot]);
  const pick = useCallback(
    (row: TimelineRow) => {
      if (row.item) onSelect(row.item);
      else onSelectRun(run);
    },
    [onSelect, onSelectRun, run],
  );
  return (
    <section className="timeline" aria-label="Timeline of the run">
      {runs.length > 1 && <TurnPicker runs={runs} run={run} onSelectRun={onSelectRun} />}
      <AgentTable key={run.runId} summary={summary} />
      {timeline.rows.length > 1 ? (
        <>
          <Chart key={`chart ${run.runId}`} timeline={timeline} focus={focus} onSelect={pick} />
          <Legend rows={timeline.rows} />
        </>
      ) : (
        <p className="timeline-empty">
          {timeline.isRunning ? "Nothing has happened yet. " : "Nothing in this turn took any time. "}
          Steps, tools and sub-agents appear here as bars over time.
        </p>
      )}
    </section>
  );
});

export default TimelinePane;
