import { ChevronLeft, ChevronRight } from "lucide-react";
import { memo, useCallback, useMemo, useState } from "react";
import type { Item, RunView } from "../log/view";
import { escapeInvisible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { useNow } from "../ui/clock";
import { AgentTable } from "./AgentTable";
import { Chart } from "./Chart";
import { isRunning, layout, type Row } from "./layout";
import { summarize } from "./summary";
import "./timeline.css";

interface Seen {
  readonly run: RunView;
  readonly now: number;
}

/** Longer runs are laid out once a second only. */
const LONG = 2000;
const REST_MS = 1000;

/** The run at the last tick of the clock: tokens arrive faster than the chart should change. */
export function useThrottledRun(run: RunView): Seen {
  const running = isRunning(run);
  const now = useNow(running);
  const [seen, setSeen] = useState<Seen>({ run, now });
  const isLate = seen.run !== run && (!running || seen.run.runId !== run.runId);
  const rest = running && run.items.length > LONG ? REST_MS : 1;
  if (Math.abs(now - seen.now) < rest && !isLate) return seen;
  const fresh = { run, now };
  setSeen(fresh);
  return fresh;
}

interface TurnPickerProps {
  readonly runs: readonly RunView[];
  readonly run: RunView;
  readonly onSelectRun: (run: RunView) => void;
}

const LINE = 60;
/** Number of turns listed on either side of the shown one. */
const NEAR = 100;

/** Chooses the turn of the session. */
export const TurnPicker = memo(function TurnPicker({ runs, run, onSelectRun }: TurnPickerProps) {
  const at = runs.findIndex((one) => one.runId === run.runId);
  const first = Math.max(0, at - NEAR);
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
        {runs.slice(first, at + NEAR + 1).map((one, index) => (
          <option key={one.runId} value={first + index}>
            {`Turn ${one.turn || first + index + 1} · ${escapeInvisible(one.input.slice(0, LINE)).replace(/\s+/g, " ")}`}
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

interface Sign {
  readonly word: string;
  readonly look: string;
  readonly occurs: (row: Row) => boolean;
}

const isOff = (row: Row) => row.state === "stopped" || row.state === "rejected";
const waits = (row: Row) => row.parts.some((part) => part.kind === "wait");

const SIGNS: readonly Sign[] = [
  { word: "Agent", look: "timeline-bar-agent", occurs: (row) => row.kind === "agent" },
  { word: "Step", look: "timeline-bar-step", occurs: (row) => row.kind === "step" },
  { word: "Thinking", look: "timeline-bar-thought", occurs: (row) => row.kind === "thought" },
  { word: "Text", look: "timeline-bar-text", occurs: (row) => row.kind === "text" },
  { word: "Tool", look: "timeline-bar-tool", occurs: (row) => row.kind === "tool" },
  {
    word: "Writing arguments",
    look: "timeline-bar-tool timeline-part-write",
    occurs: (row) => row.parts.some((part) => part.kind === "write"),
  },
  { word: "Waiting for you", look: "timeline-bar-tool timeline-part-wait", occurs: waits },
  { word: "Failed", look: "timeline-bar-tool timeline-is-failed", occurs: (row) => row.state === "failed" },
  {
    word: "No result seen",
    look: "timeline-bar-tool timeline-is-unseen",
    occurs: (row) => row.state === "unseen",
  },
  { word: "Stopped", look: "timeline-bar-tool timeline-is-stopped", occurs: isOff },
];

/** The meaning of the bars that occur. */
export const Legend = memo(function Legend({ rows }: { rows: readonly Row[] }) {
  return (
    <ul className="timeline-legend" aria-label="Legend">
      {SIGNS.filter((sign) => rows.some(sign.occurs)).map((sign) => (
        <li key={sign.word}>
          <span className="timeline-swatch" aria-hidden="true">
            <span className={`timeline-bar ${sign.look}`} />
          </span>
          {sign.word}
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

/** The timeline of a run: what ran when, in parallel, and at what cost. */
const TimelinePane = memo(function TimelinePane({ runs, run, focus, onSelect, onSelectRun }: Props) {
  const seen = useThrottledRun(run);
  const timeline = useMemo(() => layout(seen.run, seen.now), [seen]);
  const summary = useMemo(() => summarize(seen.run, seen.now), [seen]);
  const pick = useCallback(
    (row: Row) => {
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
