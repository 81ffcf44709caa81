/** Searches a session: finds the matching items, and marks the search terms in a text. Pure. */

import { stripAnsi } from "../text/sanitizeAnsi";
import type { JsonValue } from "../wire/events";
import { valueText } from "./displayText";
import { type AgentView, type Item, type OutputPiece, type RunView, startedAgents } from "./viewModel";

export interface Filter {
  readonly text: string;
  readonly errorsOnly: boolean;
  /** Only calls of this tool; "" for no restriction. */
  readonly tool: string;
}

export const NO_FILTER: Filter = { text: "", errorsOnly: false, tool: "" };

interface TextSegment {
  readonly text: string;
  readonly hit: boolean;
}

/** A match of the search: an item, or the question, the answer or the failure of a run. */
export type SearchHit =
  | { readonly kind: "question" | "answer" | "failure"; readonly run: RunView; readonly item: Item | null }
  | { readonly kind: "item"; readonly run: RunView; readonly item: Item };

/** Returns the complete text of a truncated call; undefined if it has not been fetched. */
type FullTextOf = (item: Item) => string | undefined;

interface ToolCount {
  readonly name: string;
  readonly count: number;
}

export function isActive(filter: Filter): boolean {
  return filter.errorsOnly || filter.tool !== "" || filter.text.trim() !== "";
}

export function searchTerms(text: string): readonly string[] {
  return text.trim().split(/\s+/u).filter(Boolean);
}

/** The matches in a run, in reading order. */
export function findHits(run: RunView, filter: Filter, fullTextOf?: FullTextOf): SearchHit[] {
  const hits: SearchHit[] = [];
  const patterns = patternsOf(filter);
  const ofRun = filter.tool === "";
  if (ofRun && !filter.errorsOnly && matchesAll(patterns, questionTexts(run)))
    hits.push({ kind: "question", run, item: null });
  const streamed = run.answer?.item == null ? null : (run.items[run.answer.item] ?? null);
  const isAnswer =
    ofRun && !filter.errorsOnly && run.answer !== null && matchesAll(patterns, answerTexts(run, streamed));
  for (const item of run.items) {
    // The streamed text of a matching answer is listed once, as the answer.
    if (!(isAnswer && item === streamed) && matches(item, filter, run, fullTextOf, patterns))
      hits.push({ kind: "item", run, item });
  }
  if (isAnswer) hits.push({ kind: "answer", run, item: streamed });
  if (ofRun && run.state === "failed" && matchesAll(patterns, failureTexts(run)))
    hits.push({ kind: "failure", run, item: null });
  return hits;
}

/** Number of truncated questions and answers. The search covers only their beginning. */
export function countTruncatedMessages(runs: readonly RunView[]): number {
  let count = 0;
  for (const { inputTruncation, answer } of runs) {
    if (inputTruncation !== null) count += 1;
    if (answer?.truncation != null && answer.item === null) count += 1;
  }
  return count;
}

/** Whether an item matches the filter. Each search term must occur in one of the item's texts. */
export function matches(
  item: Item,
  filter: Filter,
  run: RunView,
  fullTextOf?: FullTextOf,
  patterns = patternsOf(filter),
): boolean {
  if (filter.tool !== "" && !((item.kind === "tool" || item.kind === "approval") && item.name === filter.tool))
    return false;
  if (filter.errorsOnly && !isFailed(item, run)) return false;
  if (patterns.length === 0) return true;
  const texts = [...textsOf(item), ...failedAgents(item, run).flatMap((agent) => [agent.name, agent.error ?? ""])];
  const fetched = item.kind === "tool" ? fullTextOf?.(item) : undefined;
  if (fetched !== undefined) texts.push(fetched);
  return matchesAll(patterns, texts);
}

/** Returns the sub-agents of an item that have failed. */
export function failedAgents(item: Item, run: RunView): readonly AgentView[] {
  return startedAgents(run, item).filter((agent) => agent.state === "failed");
}

/** Tools with their number of calls, the most frequent first. */
export function countTools(runs: readonly RunView[]): ToolCount[] {
  const counts = new Map<string, number>();
  for (const run of runs)
    for (const item of run.items) if (item.kind === "tool") counts.set(item.name, (counts.get(item.name) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((one, other) => other.count - one.count || (one.name < other.name ? -1 : 1));
}

/** Splits a text into segments, and marks those that are a search term as hits. */
export function highlightMatches(text: string, words: readonly string[]): TextSegment[] {
  const known = words.filter(Boolean).sort((one, other) => other.length - one.length);
  if (known.length === 0 || text === "") return text === "" ? [] : [{ text, hit: false }];
  const stretches: TextSegment[] = [];
  let from = 0;
  for (const found of text.matchAll(new RegExp(known.map(escapeRegExp).join("|"), "giu"))) {
    if (found.index > from) stretches.push({ text: text.slice(from, found.index), hit: false });
    stretches.push({ text: found[0], hit: true });
    from = found.index + found[0].length;
  }
  if (from < text.length) stretches.push({ text: text.slice(from), hit: false });
  return stretches;
}

function isFailed(item: Item, run: RunView): boolean {
  if ((item.kind === "tool" || item.kind === "step") && item.state === "failed") return true;
  return failedAgents(item, run).length > 0;
}

/** Whether each pattern occurs in at least one of the texts. */
function matchesAll(patterns: readonly RegExp[], texts: readonly string[]): boolean {
  return patterns.every((pattern) => texts.some((text) => pattern.test(text)));
}

function questionTexts(run: RunView): string[] {
  return [run.input, ...run.attachments.map((attachment) => attachment.name ?? "")];
}

function answerTexts({ answer }: RunView, streamed: Item | null): string[] {
  if (answer === null) return [];
  const said = streamed?.kind === "text" ? [streamed.text] : [];
  return [answer.title, ...searchableTexts(answer.content), ...said, ...answer.sources];
}

function failureTexts({ failure, reason }: RunView): string[] {
  return failure === null ? [reason] : [failure.message, failure.code, failure.errorId, reason];
}

function patternsOf(filter: Filter): readonly RegExp[] {
  return searchTerms(filter.text).map((term) => new RegExp(escapeRegExp(term), "iu"));
}

function escapeRegExp(word: string): string {
  return word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

function textsOf(item: Item): string[] {
  switch (item.kind) {
    case "tool":
      return [
        item.name,
        ...(item.args === null ? [item.argsText] : searchableTexts(item.args)),
        outputText(item.output),
        ...searchableTexts(item.result),
        item.error ?? "",
      ];
    case "approval":
      return [item.name, ...searchableTexts(item.args), item.reason];
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

/** Returns the shown text of a value and, if it is JSON with escapes, also its unescaped strings. */
function searchableTexts(value: JsonValue): string[] {
  const shown = valueText(value);
  return typeof value !== "string" && shown.includes("\\") ? [shown, stringsIn(value)] : [shown];
}

function stringsIn(value: JsonValue): string {
  const found: string[] = [];
  const todo: JsonValue[] = [value];
  for (let next = todo.pop(); next !== undefined; next = todo.pop()) {
    if (typeof next === "string") found.push(next);
    else if (typeof next === "object" && next !== null) for (const part of Object.values(next)) todo.push(part);
  }
  return found.join("\n");
}

/** The output as text without ANSI styles, because a style sequence inside a word would prevent a match. */
function outputText(pieces: readonly OutputPiece[]): string {
  const text = pieces.map((piece) => piece.text).join("");
  return text.includes("\u001b") ? stripAnsi(text) : text;
}
