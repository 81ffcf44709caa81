import { memo, useEffect, useRef, useState } from "react";
import type { RunView } from "../log/view";
import { plainEnd } from "./transcript";

const SIZE = 10_000;
const REST_MS = 1000;

/** The end of the terminal as text, for those who do not see it; renewed once a second at most. */
export const TerminalText = memo(function TerminalText({ runs }: { runs: readonly RunView[] }) {
  const [shown, setShown] = useState(runs);
  const newest = useRef(runs);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  newest.current = runs;
  useEffect(() => {
    if (runs === shown || timer.current !== undefined) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      setShown(newest.current);
    }, REST_MS);
  }, [runs, shown]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return <Lines runs={shown} />;
});

const Lines = memo(function Lines({ runs }: { runs: readonly RunView[] }) {
  const last = runs.findLast((run) => run.terminal.length > 0);
  return <pre className="unseen">{last ? plainEnd(last, SIZE) : ""}</pre>;
});
