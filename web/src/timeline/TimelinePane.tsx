import { memo, useCallback, useMemo } from "react";
import type { Item, RunView } from "../log/view";
import { AgentTable } from "./AgentTable";
import { Chart } from "./Chart";
import { Legend } from "./Legend";
import { layout, type Row } from "./layout";
import { summarise } from "./summary";
import { TurnPicker } from "./TurnPicker";
import { useSteady } from "./useThrottledRun";
import "./timeline.css";

interface Props {
  readonly runs: readonly RunView[];
  readonly run: RunView;
  readonly focus: Item | null;
  readonly onPick: (item: Item) => void;
  readonly onPickRun: (run: RunView) => void;
}

/** One picture of a run: what ran when, what ran at once, and what it cost. */
const TimelinePane = memo(function TimelinePane({ runs, run, focus, onPick, onPickRun }: Props) {
  const seen = useSteady(run);
  const timeline = useMemo(() => layout(seen.run, seen.now), [seen]);
  const summary = useMemo(() => summarise(seen.run, seen.now), [seen]);
  const pick = useCallback(
    (row: Row) => {
      if (row.item) onPick(row.item);
      else onPickRun(run);
    },
    [onPick, onPickRun, run],
  );
  return (
    <section className="timeline" aria-label="Timeline of the run">
      {runs.length > 1 && <TurnPicker runs={runs} run={run} onPickRun={onPickRun} />}
      <AgentTable key={run.runId} summary={summary} />
      {timeline.rows.length > 1 ? (
        <>
          <Chart key={`chart ${run.runId}`} timeline={timeline} focus={focus} onPick={pick} />
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
