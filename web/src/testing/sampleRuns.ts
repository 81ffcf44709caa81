/** Builds runs for tests, from golden transcripts or from timed events. */

import { truncateLine } from "../log/displayText";
import { reduce } from "../log/reduce";
import { EMPTY, type RunView, type SessionView } from "../log/viewModel";
import type { AnyEvent, ToolStarted } from "../wire/events";
import { transcript } from "./goldenTranscripts";

export const START = 1_700_000_000_000;

export function goldenSession(name: string): SessionView {
  return reduce(EMPTY, transcript(name));
}

export type TimedEvent = readonly [seconds: number, event: AnyEvent];

export function sampleSession(...runs: readonly (readonly TimedEvent[])[]): SessionView {
  let seq = 0;
  const records = runs.flatMap((events, turn) =>
    events.map(([seconds, event]) => {
      seq += 1;
      return { seq, run_id: `run_${turn}`, at: START + Math.round(seconds * 1000), event };
    }),
  );
  return reduce(EMPTY, records);
}

export function sampleRun(...events: readonly TimedEvent[]): RunView {
  return onlyRun(sampleSession([[0, { kind: "run_started", agent: "deep", input: "go" }], ...events]));
}

/** Returns the start event of a call that runs Python, with the fields that the server derives. If `code` is null, its
 * arguments are still streaming. */
export function pythonCall(callId: string, code: string | null, name = "python"): ToolStarted {
  const begun = { kind: "tool_started", call_id: callId, name, language: "python" } as const;
  return code === null ? begun : { ...begun, args: { code }, summary: truncateLine(code), code_key: "code" };
}

export function onlyRun(view: SessionView): RunView {
  const run = view.runs[0];
  if (run === undefined) throw new Error("there is no run");
  return run;
}
