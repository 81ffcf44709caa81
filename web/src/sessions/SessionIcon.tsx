import type { Progress } from "../log/view";
import { StateIcon } from "../parts/StateIcon";
import type { SessionEntry, SessionState } from "../wire/api";

const PROGRESS: Record<SessionState, Progress | null> = {
  processing: "running",
  completed: "done",
  error: "failed",
  idle: "stopped",
  expired: null,
};

/** How the newest run of a conversation went; a dot where that is long ago, or nothing was asked yet. */
export function SessionIcon({ entry }: { entry: Pick<SessionEntry, "state" | "turns"> }) {
  const progress = entry.turns === 0 && entry.state === "idle" ? null : PROGRESS[entry.state];
  return progress ? <StateIcon state={progress} size={14} /> : <span className="sessions-dot" aria-hidden="true" />;
}
