import { formatDuration } from "../log/format";

/** A duration, exact below a second. */
export function took(ms: number): string {
  return ms < 1000 ? `${Math.max(0, Math.round(ms))} ms` : formatDuration(ms);
}
