import type { Progress } from "../log/view";
import { StateIcon } from "../ui/StateIcon";
import type { SessionEntry, SessionState } from "../wire/api";

const PROGRESS: Record<SessionState, Progress | null> = {
  processing: "running",
  completed: "done",
  error: "failed",
  idle: "stopped",
  expired: null,
};

function progressOf({ state, turns, run_state }: Pick<SessionEntry, "state" | "turns" | "run_state">) {
  if (turns === 0 && state === "idle") return null;
  return state === "processing" && run_state === "waiting" ? "waiting" : PROGRESS[state];
}

/** How the newest run of a conversation went; a dot where that is long ago, or nothing was asked yet. */
export function SessionIcon({ entry }: { entry: Pick<SessionEntry, "state" | "turns" | "run_state"> }) {
  const progress = progressOf(entry);
  return progress ? <StateIcon state={progress} size={14} /> : <span className="sessions-dot" aria-hidden="true" />;
}
