import { ChevronLeft, ChevronRight } from "lucide-react";
import { memo } from "react";
import type { RunView } from "../log/view";
import { visible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";

interface Props {
  readonly runs: readonly RunView[];
  readonly run: RunView;
  readonly onPickRun: (run: RunView) => void;
}

const LINE = 60;
/** So many turns on either side are offered: a list of thousands helps nobody, and costs a part of the page each. */
const NEAR = 100;

/** Which turn of the session is shown. */
export const TurnPicker = memo(function TurnPicker({ runs, run, onPickRun }: Props) {
  const at = runs.findIndex((one) => one.runId === run.runId);
  const first = Math.max(0, at - NEAR);
  const go = (to: number) => {
    const next = runs[to];
    if (next) onPickRun(next);
  };
  return (
    <div className="timeline-turns">
      <Button look="quiet" aria-label="Turn before" title="Turn before" disabled={at <= 0} onClick={() => go(at - 1)}>
        <ChevronLeft size={15} aria-hidden="true" />
      </Button>
      <select aria-label="Turn" value={at} onChange={(event) => go(Number(event.target.value))}>
        {runs.slice(first, at + NEAR + 1).map((one, index) => (
          <option key={one.runId} value={first + index}>
            {`Turn ${one.turn || first + index + 1} · ${visible(one.input.slice(0, LINE)).replace(/\s+/g, " ")}`}
          </option>
        ))}
      </select>
      <Button
        look="quiet"
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
