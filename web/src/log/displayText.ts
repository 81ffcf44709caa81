/** Makes the texts that the page displays for values of the log: durations, sizes, numbers of tokens, calls. */

import type { JsonValue } from "../wire/events";
import type { ToolItem } from "./viewModel";

const MAX_LINE_LENGTH = 80;

/** Arguments or a result as text: a string unchanged, anything else as JSON. */
export function valueText(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** Formats a tool call as one line: its name and its main argument. */
export function callLine({ name, summary }: Pick<ToolItem, "name" | "summary">): string {
  return summary ? `${name} ${summary}` : name;
}

/** Returns the first line of a text, cut to the length of a row. */
export function truncateLine(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length > MAX_LINE_LENGTH ? `${line.slice(0, MAX_LINE_LENGTH - 1)}…` : line;
}

/** Formats a duration: exact ms below one second, otherwise like `formatDuration`. */
export function formatExactDuration(ms: number): string {
  return ms < 1000 ? `${Math.max(0, Math.round(ms))} ms` : formatDuration(ms);
}

/** Formats a duration: 30 ms, 0.4 s, 12 s, 3 min 05 s, 1 h 02 min. */
export function formatDuration(ms: number): string {
  if (ms < 95) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const rounded = Math.round(seconds);
  if (rounded < 60) return `${rounded} s`;
  const minutes = Math.floor(rounded / 60);
  if (minutes < 60) return `${minutes} min ${String(rounded % 60).padStart(2, "0")} s`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, "0")} min`;
}

/** Formats a size in bytes: 512 B, 3.4 kB, 1.2 MB. */
export function formatBytes(size: number): string {
  if (size < 1000) return `${size} B`;
  const units = ["kB", "MB", "GB", "TB"];
  let value = size / 1000;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${units[unit]}`;
}

/** Formats a number of tokens: 840, 1.2k, 34k, 1.3M. */
export function formatTokens(count: number): string {
  if (count < 1000) return String(count);
  if (count < 999_500) return count < 9950 ? `${(count / 1000).toFixed(1)}k` : `${Math.round(count / 1000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
