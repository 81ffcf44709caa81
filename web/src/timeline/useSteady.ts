import { useState } from "react";
import type { RunView } from "../log/view";
import { useNow } from "../parts/useNow";
import { isRunning } from "./layout";

interface Seen {
  readonly run: RunView;
  readonly now: number;
}

/** The run as it was at the last tick of the clock: tokens come faster than a picture should move. */
export function useSteady(run: RunView): Seen {
  const running = isRunning(run);
  const now = useNow(running);
  const [seen, setSeen] = useState<Seen>({ run, now });
  const isLate = seen.run !== run && (!running || seen.run.runId !== run.runId);
  if (seen.now === now && !isLate) return seen;
  const fresh = { run, now };
  setSeen(fresh);
  return fresh;
}
