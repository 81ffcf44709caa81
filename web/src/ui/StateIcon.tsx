import {
  CircleCheck,
  CircleDashed,
  CircleQuestionMark,
  CircleSlash,
  CircleX,
  LoaderCircle,
  type LucideIcon,
  PauseCircle,
  Square,
} from "lucide-react";
import type { Progress } from "../log/viewModel";
import "./ui.css";

const ICONS: Record<Progress, LucideIcon> = {
  running: LoaderCircle,
  waiting: PauseCircle,
  done: CircleCheck,
  failed: CircleX,
  stopped: Square,
  rejected: CircleSlash,
  unseen: CircleQuestionMark,
};

export const STATE_LABELS: Record<Progress, string> = {
  running: "running",
  waiting: "waiting for you",
  done: "done",
  failed: "failed",
  stopped: "stopped",
  rejected: "rejected",
  unseen: "no result seen",
};

/** The coloured icon for the state of a run, an agent or a tool call, with a label for screen readers. */
export function StateIcon({ state, size = 15 }: { state: Progress | "pending"; size?: number }) {
  const Icon = state === "pending" ? CircleDashed : ICONS[state];
  const word = state === "pending" ? "pending" : STATE_LABELS[state];
  return (
    <span className={`state state-${state}`} role="img" aria-label={word} title={word}>
      <Icon size={size} aria-hidden="true" />
    </span>
  );
}
