/**
 * Types of the view model of a session: immutable values that `reduce` makes from the records of its log.
 *
 * Items are ordered by their start. An item's `key` consists of its run's id and its index, so it is the same for all
 * readers of the log. This module does not depend on React, the clock or the network.
 */

import type {
  Attachment,
  Decision,
  JsonObject,
  JsonValue,
  Outcome,
  OutputStream,
  SourceLink,
  Todo,
} from "../wire/events";

/** Arguments as an object, or the raw text if it is not valid JSON. */
export type Args = JsonObject | string;

export type RunState = "running" | "waiting" | "finished" | "failed" | "cancelled";

/** State of a tool call, a step or an agent. A call is `unseen` if it ended without a visible result. */
export type Progress = "running" | "waiting" | "done" | "failed" | "stopped" | "rejected" | "unseen";

/** Size in bytes and URL of the complete value, if the log contains only a preview of it. */
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

/** A message of an agent: a text or a thought. */
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
  /** The part of the arguments that has arrived, as JSON text, while `args` is null. */
  readonly argsText: string;
  readonly argsTruncation: Truncation | null;
  /** The value of the argument that describes the call best, chosen by the server. */
  readonly summary: string;
  /** The language of the code that the call runs; "" if it runs none. */
  readonly language: string;
  /** The name of the argument that contains the code. */
  readonly codeKey: string;
  readonly state: Progress;
  /** Time at which the call began to run: its arguments were complete and approved. */
  readonly ranAt: number;
  readonly endedAt: number | null;
  readonly durationMs: number | null;
  readonly output: readonly OutputPiece[];
  /** Number of characters that were removed from the start of `output`. */
  readonly outputDropped: number;
  readonly result: JsonValue;
  readonly resultTruncation: Truncation | null;
  readonly error: string | null;
  /** Ids of the sub-agents that the call started. */
  readonly agentIds: readonly string[];
  /** Index of the approval item of the call; null if it needed none. */
  readonly approval: number | null;
  readonly step: number | null;
}

/** A sub-agent that no tool call started. `ToolItem.agentIds` has the sub-agents that a call started. */
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

/** The current state of an agent's to-do list. */
export interface TodosItem extends Base {
  readonly kind: "todos";
  /** `running` until the list's agent ends, even if all entries are done. */
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
  readonly summary: string;
  readonly language: string;
  readonly codeKey: string;
  readonly argsTruncation: Truncation | null;
  readonly decisions: readonly Decision[];
  /** What the agent asks, in its own words. */
  readonly question: string;
  /** The JSON Schema of the answer that the user may give; null if the request takes none. */
  readonly answerSchema: JsonObject | null;
  /** The JSON Schema of the arguments; null if it is not known. */
  readonly argsSchema: JsonObject | null;
  readonly expiresAt: number | null;
  /** The decision; null while the approval is open. */
  readonly decision: Decision | null;
  /** The edited arguments, or `{value: answer}` if the user has answered. */
  readonly editedArgs: Args | null;
  readonly answered: boolean;
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
  /** The agent's name, with a branch's title, or with a number if an agent of this name was running already. */
  readonly label: string;
  readonly name: string;
  /** Whether the agent is a branch: a part of its parent's work that runs beside other parts of it. */
  readonly isBranch: boolean;
  readonly parentId: string;
  readonly callId: string;
  /** The task of a sub-agent, chosen by the server; "" if it is not known. */
  readonly task: string;
  readonly startedAt: number;
  readonly endedAt: number | null;
  readonly state: Progress;
  readonly error: string | null;
  /** The agent's last status text. */
  readonly status: string;
  readonly model: string;
  /** Tokens of all model requests of the agent. */
  readonly usage: Tokens;
  /** Tokens of all steps of the agent. Used only if the framework does not report model requests. */
  readonly stepUsage: Tokens;
  readonly tools: number;
  /** Indices of the agent's items in `RunView.items`. */
  readonly items: readonly number[];
}

export interface AnswerView {
  readonly content: JsonValue;
  readonly title: string;
  readonly sources: readonly string[];
  /** The title and the URL of each source. */
  readonly sourceLinks: readonly SourceLink[];
  readonly truncation: Truncation | null;
  /** Index of the text item that is the answer; null if the answer was not streamed. */
  readonly item: number | null;
}

/** A piece of the terminal's content: a call, or its output, result or error. `item` is the index of the call. */
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
  readonly input: string;
  readonly inputTruncation: Truncation | null;
  /** The values of the user's input object; null if the request had none, or if they are part of `input`. */
  readonly inputValues: JsonObject | null;
  readonly attachments: readonly Attachment[];
  readonly turn: number;
  readonly state: RunState;
  readonly startedAt: number;
  readonly endedAt: number | null;
  /** Time of the run's newest record. */
  readonly lastAt: number;
  /** The limit that ended the run, e.g. `max_steps`; "" if none did. */
  readonly code: string;
  readonly reason: string;
  readonly failure: RunFailure | null;
  readonly items: readonly Item[];
  readonly agents: ReadonlyMap<string, AgentView>;
  readonly answer: AnswerView | null;
  readonly tools: number;
  /** Indices of the calls with code. */
  readonly codes: readonly number[];
  readonly terminal: readonly TerminalPiece[];
  /** Indices of open items, by a name such as `tool <call id>` by which later records find them. */
  readonly open: ReadonlyMap<string, number>;
}

export interface SessionView {
  readonly runs: readonly RunView[];
  /** The `seq` of the newest record. After a reconnect the log continues behind it. */
  readonly seq: number;
  /** Ranges of records that the server no longer stores. */
  readonly gaps: readonly Gap[];
}

export interface Gap {
  readonly from: number;
  readonly to: number;
}

export const EMPTY: SessionView = { runs: [], seq: 0, gaps: [] };

export const NO_TOKENS: Tokens = { input: 0, output: 0 };

export function addTokens(one: Tokens, other: Tokens): Tokens {
  return { input: one.input + other.input, output: one.output + other.output };
}

/** Whether a run has not ended. Also true while it waits for an approval. */
export function isRunning(run: RunView | undefined): run is RunView & { readonly endedAt: null } {
  return run !== undefined && run.endedAt === null;
}

/** The calls of a run that have not ended. */
export function runningTools(run: RunView): readonly ToolItem[] {
  const open = [...run.open.values()].map((index) => run.items[index]);
  return open.filter((item): item is ToolItem => item?.kind === "tool");
}

/** The sub-agents that an item started. */
export function startedAgents(run: RunView, item: Item): readonly AgentView[] {
  const ids = item.kind === "agent" ? [item.childId] : item.kind === "tool" ? item.agentIds : [];
  return ids.map((id) => run.agents.get(id)).filter((agent) => agent !== undefined);
}

/** The state of a call, a step or an agent that has ended. The server decides whether it was stopped or rejected. */
export function endState(event: { error?: string; outcome?: Outcome }): Progress {
  return event.outcome || (event.error == null ? "done" : "failed");
}

/** Size and URL of the complete value of an event; null if the event is not truncated. */
export function truncationOf(event: { truncated?: boolean; size?: number; result_url?: string }): Truncation | null {
  return event.truncated ? { size: event.size ?? 0, url: event.result_url ?? "" } : null;
}

/** The tokens of an agent: of its model requests, or of its steps if no requests were reported. */
export function tokensOf(agent: AgentView): Tokens {
  return agent.usage.input + agent.usage.output > 0 ? agent.usage : agent.stepUsage;
}

export function tokensOfRun(run: RunView): Tokens {
  return [...run.agents.values()].map(tokensOf).reduce(addTokens, NO_TOKENS);
}
