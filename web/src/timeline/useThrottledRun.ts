import { useState } from "react";
import type { RunView } from "../log/view";
import { useNow } from "../ui/useNow";
import { isRunning } from "./layout";

interface Seen {
  readonly run: RunView;
  readonly now: number;
}

/** A run of so many items is drawn anew once a second only: laying it out takes some ms each time. */
const LONG = 2000;
const REST_MS = 1000;

/** The run as it was at the last tick of the clock: tokens come faster than a picture should move. */
export function useSteady(run: RunView): Seen {
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
