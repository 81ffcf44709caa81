/** Search within a session: which items match, and where in a text the words stand. Pure. */

import type { JsonValue } from "../wire/events";
import { argsText, textOf } from "./readable";
import type { Item, OutputPiece, RunView } from "./view";

export interface Filter {
  readonly text: string;
  readonly errorsOnly: boolean;
  /** The name of a tool; "" for all. */
  readonly tool: string;
}

export const NO_FILTER: Filter = { text: "", errorsOnly: false, tool: "" };

export interface Stretch {
  readonly text: string;
  readonly hit: boolean;
}

export interface ToolCount {
  readonly name: string;
  readonly count: number;
}

export function isActive(filter: Filter): boolean {
  return filter.errorsOnly || filter.tool !== "" || filter.text.trim() !== "";
}

export function wordsOf(text: string): readonly string[] {
  return text.trim().split(/\s+/u).filter(Boolean);
}

/**
 * Whether an item is what the filter asks for: every word must occur somewhere in it. With only words, what was said and
 * thought counts too. `whole` gives the whole of a call of which the log has only the beginning, if it has been fetched.
 */
export function matches(item: Item, filter: Filter, whole?: (item: Item) => string | undefined): boolean {
  if (filter.tool !== "" && !((item.kind === "tool" || item.kind === "approval") && item.name === filter.tool))
    return false;
  if (filter.errorsOnly && !isFailed(item)) return false;
  const patterns = patternsOf(filter.text);
  if (patterns.length === 0) return true;
  const texts = textsOf(item);
  const fetched = item.kind === "tool" ? whole?.(item) : undefined;
  if (fetched !== undefined) texts.push(fetched);
  return patterns.every((pattern) => texts.some((text) => pattern.test(text)));
}

/** The tools that were called, the most frequent first. */
export function toolNames(runs: readonly RunView[]): ToolCount[] {
  const counts = new Map<string, number>();
  for (const run of runs)
    for (const item of run.items) if (item.kind === "tool") counts.set(item.name, (counts.get(item.name) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((one, other) => other.count - one.count || (one.name < other.name ? -1 : 1));
}

/** A text in stretches, those that are one of the words apart from the rest. */
export function marked(text: string, words: readonly string[]): Stretch[] {
  const known = words.filter(Boolean).sort((one, other) => other.length - one.length);
  if (known.length === 0 || text === "") return text === "" ? [] : [{ text, hit: false }];
  const stretches: Stretch[] = [];
  let from = 0;
  for (const found of text.matchAll(new RegExp(known.map(escaped).join("|"), "giu"))) {
    if (found.index > from) stretches.push({ text: text.slice(from, found.index), hit: false });
    stretches.push({ text: found[0], hit: true });
    from = found.index + found[0].length;
  }
  if (from < text.length) stretches.push({ text: text.slice(from), hit: false });
  return stretches;
}

function isFailed(item: Item): boolean {
  return (item.kind === "tool" || item.kind === "step") && item.state === "failed";
}

/** The same words are asked of thousands of items in a row. */
let last: { readonly text: string; readonly patterns: readonly RegExp[] } = { text: "", patterns: [] };

function patternsOf(text: string): readonly RegExp[] {
  if (last.text !== text) last = { text, patterns: wordsOf(text).map((word) => new RegExp(escaped(word), "iu")) };
  return last.patterns;
}

function escaped(word: string): string {
  return word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

function textsOf(item: Item): string[] {
  switch (item.kind) {
    case "tool":
      return [
        item.name,
        ...(item.args === null ? [item.argsText] : read(item.args, argsText(item.args))),
        printed(item.output),
        ...read(item.result, textOf(item.result)),
        item.error ?? "",
      ];
    case "approval":
      return [item.name, ...read(item.args, argsText(item.args)), item.reason];
    case "text":
    case "thought":
    case "plan":
    case "status":
      return [item.text];
    case "todos":
      return item.todos.map((todo) => todo.content);
    case "source":
      return [item.title, item.url, item.text];
    case "artifact":
      return [item.name];
    case "step":
      return [item.error ?? ""];
    case "agent":
      return [];
  }
}

/** A value as it is shown, and its strings as they are where JSON writes them otherwise. */
function read(value: JsonValue, shown: string): string[] {
  return typeof value !== "string" && shown.includes("\\") ? [shown, strings(value)] : [shown];
}

function strings(value: JsonValue): string {
  const found: string[] = [];
  const todo: JsonValue[] = [value];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    if (typeof next === "string") found.push(next);
    else if (typeof next === "object" && next !== null) for (const part of Object.values(next)) todo.push(part);
  }
  return found.join("\n");
}

/** What was printed, without the colours that may stand inside a word. */
function printed(pieces: readonly OutputPiece[]): string {
  const text = pieces.map((piece) => piece.text).join("");
  return text.includes("\u001b") ? text.replace(/\u001b\[[0-9;:]*m/g, "") : text;
}
