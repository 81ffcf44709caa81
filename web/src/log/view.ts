import type { Attachment, Decision, JsonObject, JsonValue, OutputStream, Todo } from "../wire/events";

/**
 * What the page shows of a session: plain immutable values, folded from Records by `reduce`.
 *
 * An item is one thing in the order in which it began. `key` is its address: the run and its place in it, the same for
 * everybody who reads the log. Nothing here knows React, the clock or the network.
 */

/** Arguments as an object, or raw text if they were no valid JSON. */
export type Args = JsonObject | string;

export type RunState = "running" | "waiting" | "finished" | "failed" | "cancelled";

/** How far a tool, a step or a sub-agent has come. A tool is `unseen` if it is over and its result was not seen. */
export type Progress = "running" | "waiting" | "done" | "failed" | "stopped" | "rejected" | "unseen";

/** Where the whole of something is that came as a preview. */
export interface Truncation {
  readonly size: number;
  readonly url: string;
}

interface Base {
  readonly key: string;
  readonly index: number;
  readonly agentId: string;
  readonly at: number;
}

/** Something that an agent said (`text`) or thought (`thought`). */
export interface MessageItem extends Base {
  readonly kind: "text" | "thought";
  readonly messageId: string;
  readonly text: string;
  readonly endedAt: number | null;
}

export interface OutputPiece {
  readonly stream: OutputStream;
  readonly text: string;
}

export interface ToolItem extends Base {
  readonly kind: "tool";
  readonly callId: string;
  readonly name: string;
  readonly args: Args | null;
  /** Arguments as far as they have been written, while `args` is null. */
  readonly argsText: string;
  readonly argsTruncation: Truncation | null;
  readonly isPython: boolean;
  readonly state: Progress;
  /** When it began to run: its arguments were whole, and a person had agreed if one was asked. */
  readonly ranAt: number;
  readonly endedAt: number | null;
  readonly durationMs: number | null;
  readonly output: readonly OutputPiece[];
  /** Characters of output that are no longer kept here. */
  readonly outputDropped: number;
  readonly result: JsonValue;
  readonly resultTruncation: Truncation | null;
  readonly error: string | null;
  /** The sub-agents that it started. */
  readonly agentIds: readonly string[];
  /** The question that it waited for. */
  readonly approval: number | null;
  readonly step: number | null;
}

/** A sub-agent that no call of a tool started. Those that one did stand in the tool. */
export interface AgentItem extends Base {
  readonly kind: "agent";
  readonly childId: string;
}

export interface PlanItem extends Base {
  readonly kind: "plan";
  readonly text: string;
  readonly update: boolean;
  readonly isGrowing: boolean;
}

/** The newest state of an agent's list. */
export interface TodosItem extends Base {
  readonly kind: "todos";
  /** Nobody works on it behind the end of its agent, whatever the agent has left unticked. */
  readonly state: Extract<Progress, "running" | "done" | "stopped">;
  readonly todos: readonly Todo[];
}

export interface StepItem extends Base {
  readonly kind: "step";
  readonly number: number;
  readonly stepKind: string;
  readonly state: Progress;
  readonly endedAt: number | null;
  readonly durationMs: number | null;
  readonly tokens: Tokens | null;
  readonly error: string | null;
}

export interface StatusItem extends Base {
  readonly kind: "status";
  readonly text: string;
}

export interface ApprovalItem extends Base {
  readonly kind: "approval";
  readonly approvalId: string;
  readonly callId: string;
  readonly name: string;
  readonly args: Args;
  readonly argsTruncation: Truncation | null;
  readonly decisions: readonly Decision[];
  readonly expiresAt: number | null;
  /** Null while it waits for a person. */
  readonly decision: Decision | null;
  readonly editedArgs: Args | null;
  readonly reason: string;
  readonly by: string;
  readonly decidedAt: number | null;
}

export interface SourceItem extends Base {
  readonly kind: "source";
  readonly title: string;
  readonly url: string;
  readonly text: string;
}

export interface ArtifactItem extends Base {
  readonly kind: "artifact";
  readonly artifactId: string;
  readonly name: string;
  readonly mediaType: string;
  readonly size: number;
  readonly callId: string;
}

export type Item =
  | MessageItem
  | ToolItem
  | AgentItem
  | PlanItem
  | TodosItem
  | StepItem
  | StatusItem
  | ApprovalItem
  | SourceItem
  | ArtifactItem;

export interface Tokens {
  readonly input: number;
  readonly output: number;
}

export interface AgentView {
  readonly agentId: string;
  readonly name: string;
  readonly parentId: string;
  readonly callId: string;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly state: Progress;
  readonly error: string | null;
  /** What it said last of what it does. */
  readonly status: string;
  readonly model: string;
  /** What its requests to a model cost. */
  readonly usage: Tokens;
  /** What its steps say that they cost: only counts where the framework tells of no single requests. */
  readonly stepUsage: Tokens;
  readonly tools: number;
  /** Places in `RunView.items`. */
  readonly items: readonly number[];
}

export interface AnswerView {
  readonly content: JsonValue;
  readonly title: string;
  readonly sources: readonly string[];
  readonly cut: Truncation | null;
  /** The place of the text that is the answer; null if it was never streamed. */
  readonly item: number | null;
}

/** A stretch of what the terminal shows. A neighbouring stretch of the same call and kind is joined to it, if it is not long. */
export interface TerminalPiece {
  readonly item: number;
  readonly kind: "call" | OutputStream | "result" | "error";
  readonly text: string;
}

export interface RunFailure {
  readonly code: string;
  readonly message: string;
  readonly errorId: string;
}

export interface RunView {
  readonly runId: string;
  readonly agent: string;
  readonly framework: string;
  readonly pythonTools: readonly string[];
  readonly input: string;
  readonly inputTruncation: Truncation | null;
  readonly attachments: readonly Attachment[];
  readonly turn: number;
  readonly state: RunState;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** The time of its newest Record. */
  readonly lastAt: number;
  /** Why it ended where it did, if that was a limit, e.g. `max_steps`. */
  readonly code: string;
  readonly reason: string;
  readonly failure: RunFailure | null;
  readonly items: readonly Item[];
  readonly agents: ReadonlyMap<string, AgentView>;
  readonly answer: AnswerView | null;
  readonly tools: number;
  /** Places of the calls that carry code. */
  readonly codes: readonly number[];
  readonly terminal: readonly TerminalPiece[];
  /** Places of what is not finished yet, by what the next Record about it will name. */
  readonly open: ReadonlyMap<string, number>;
}

export interface SessionView {
  readonly runs: readonly RunView[];
  /** The `seq` of the newest Record: where a reconnect goes on. */
  readonly seq: number;
  /** Records that are no longer kept, if some are missing. */
  readonly gaps: readonly Gap[];
}

export interface Gap {
  readonly from: number;
  readonly to: number;
}

export const EMPTY: SessionView = { runs: [], seq: 0, gaps: [] };

/** Small values that several parts of the fold share. */

export const NO_TOKENS: Tokens = { input: 0, output: 0 };

export function addTokens(one: Tokens, other: Tokens): Tokens {
  return { input: one.input + other.input, output: one.output + other.output };
}

/** Where the whole is of what an event carries only the beginning of. */
export function truncationOf(event: { truncated?: boolean; size?: number; result_url?: string }): Truncation | null {
  return event.truncated ? { size: event.size ?? 0, url: event.result_url ?? "" } : null;
}

/** What an agent cost: the sum of its requests, or what its steps said where single requests are not told. */
export function tokensOf(agent: AgentView): Tokens {
  return agent.usage.input + agent.usage.output > 0 ? agent.usage : agent.stepUsage;
}

export function tokensOfRun(run: RunView): Tokens {
  return [...run.agents.values()].map(tokensOf).reduce(addTokens, NO_TOKENS);
}
