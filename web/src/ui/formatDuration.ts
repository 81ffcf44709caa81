import { formatDuration } from "../log/format";

/** A time span, exact below a second: in a timeline many things are short. */
export function took(ms: number): string {
  return ms < 1000 ? `${Math.max(0, Math.round(ms))} ms` : formatDuration(ms);
}
