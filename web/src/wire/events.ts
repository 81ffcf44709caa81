// Made from src/limelight/events.py by `make types`: change that.
// A field that is absent has its default: "", 0, false or nothing, unless its comment says otherwise.

/** Any JSON value; what a tool is called with and what it returns. */
export type JsonValue = JsonObject | readonly JsonValue[] | string | number | boolean | null;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}

export type TodoStatus = "pending" | "in_progress" | "completed";

export type OutputStream = "stdout" | "stderr";

export type Decision = "approve" | "edit" | "reject";

/** One item of a plan. */
export interface Todo {
  readonly content: string;
  readonly status: TodoStatus;
}

/** A file or image that came with the user's message. Bytes that were sent along are kept as an artifact. */
export interface Attachment {
  readonly media_type: string;
  readonly name?: string;
  readonly artifact_id?: string;
  readonly url?: string;
}

/** A turn began: who was asked, and what. Carries all that a dialect needs to start from nothing. */
export interface RunStarted {
  readonly kind: "run_started";
  readonly agent_id?: string;
  readonly agent: string;
  readonly input?: string;
  /** Absent: `1`. */
  readonly turn?: number;
  /** False if texts come whole, because the agent is set so. Absent: `true`. */
  readonly enable_streaming?: boolean;
  /** The source that plays it, e.g. `smolagents`: what its reasoning stands for differs. */
  readonly framework?: string;
  /** Tools whose argument is Python code, if the agent names any. */
  readonly python_tools?: readonly string[];
  /** The span of the client in which the run was asked for, as the header of W3C Trace Context says it. */
  readonly traceparent?: string;
  readonly attachments?: readonly Attachment[];
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** A line that says what goes on, for a human; it never carries results. */
export interface Status {
  readonly kind: "status";
  readonly agent_id?: string;
  readonly text: string;
}

/** A piece of a message. The first one of a `message_id` opens the message. */
export interface TextDelta {
  readonly kind: "text_delta";
  readonly agent_id?: string;
  readonly message_id: string;
  readonly text: string;
}

/** The message is whole: its text is the sum of its deltas. */
export interface TextFinished {
  readonly kind: "text_finished";
  readonly agent_id?: string;
  readonly message_id: string;
}

/** A piece of the agent's thinking. The first one of a `message_id` opens it. */
export interface ReasoningDelta {
  readonly kind: "reasoning_delta";
  readonly agent_id?: string;
  readonly message_id: string;
  readonly text: string;
}

/** The thought is whole. */
export interface ReasoningFinished {
  readonly kind: "reasoning_finished";
  readonly agent_id?: string;
  readonly message_id: string;
}

/** A piece of a plan in words, while the agent writes it. The `plan` that follows has all of it. */
export interface PlanDelta {
  readonly kind: "plan_delta";
  readonly agent_id?: string;
  readonly text: string;
  readonly update?: boolean;
}

/** What the agent means to do, as text or as items; `update` is false for the first plan of a run. */
export interface Plan {
  readonly kind: "plan";
  readonly agent_id?: string;
  readonly text?: string;
  readonly items?: readonly Todo[];
  readonly update?: boolean;
  readonly truncated?: boolean;
}

/** The agent's loop began another round. */
export interface StepStarted {
  readonly kind: "step_started";
  readonly agent_id?: string;
  readonly number: number;
  /** Absent: `"action"`. */
  readonly step_kind?: string;
}

/** The round ended, with what it cost where the framework says so. */
export interface StepFinished {
  readonly kind: "step_finished";
  readonly agent_id?: string;
  readonly number: number;
  /** Absent: `"action"`. */
  readonly step_kind?: string;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
  readonly duration_ms?: number;
  readonly error?: string;
}

/** A tool call appeared. `args` is None while they are still streaming, and raw text if they are not valid JSON. */
export interface ToolStarted {
  readonly kind: "tool_started";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly name: string;
  readonly args?: JsonObject | string;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** A piece of the arguments' JSON text. */
export interface ToolArgsDelta {
  readonly kind: "tool_args_delta";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly text: string;
}

/** The arguments are whole: the tool runs now, or waits for an approval. */
export interface ToolReady {
  readonly kind: "tool_ready";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly args: JsonObject | string;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** What a running tool printed. */
export interface ToolOutputDelta {
  readonly kind: "tool_output_delta";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly text: string;
  /** Absent: `"stdout"`. */
  readonly stream?: OutputStream;
}

/**
 * The call is over. On failure `error` is its message and `result` is "Error: " + that message.
 *
 * A call without an error succeeded, unless `result_seen` is False: then it is not known how the call ended.
 */
export interface ToolFinished {
  readonly kind: "tool_finished";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly result?: JsonValue;
  readonly error?: string;
  /**
   * False if the agent ended without showing what became of the call; `result` is then "No result seen". Absent: `true`.
   */
  readonly result_seen?: boolean;
  readonly duration_ms?: number;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** A sub-agent began: `agent_id` is its own id, `parent_id` who started it, `call_id` the call that spawned it. */
export interface AgentStarted {
  readonly kind: "agent_started";
  readonly agent_id?: string;
  readonly name: string;
  readonly parent_id?: string;
  readonly call_id?: string;
}

/** The sub-agent ended; its report is the result of the call that spawned it. */
export interface AgentFinished {
  readonly kind: "agent_finished";
  readonly agent_id?: string;
  readonly error?: string;
}

/** A person must decide before the agent goes on. `expires_at` is absolute (ms). */
export interface ApprovalRequested {
  readonly kind: "approval_requested";
  readonly agent_id?: string;
  readonly approval_id: string;
  readonly name: string;
  readonly args: JsonObject | string;
  readonly call_id?: string;
  /** Absent: `["approve", "edit", "reject"]`. */
  readonly decisions?: readonly Decision[];
  readonly expires_at?: number;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** Somebody decided, or the time ran out (`by` says who). */
export interface ApprovalResolved {
  readonly kind: "approval_resolved";
  readonly agent_id?: string;
  readonly approval_id: string;
  readonly decision: Decision;
  readonly args?: JsonObject | string;
  readonly reason?: string;
  readonly by?: string;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** Something the answer rests on. */
export interface SourceCited {
  readonly kind: "source_cited";
  readonly agent_id?: string;
  readonly title: string;
  readonly url?: string;
  readonly text?: string;
  readonly truncated?: boolean;
}

/** A file was made; its bytes are in the store under `artifact_id`. */
export interface ArtifactMade {
  readonly kind: "artifact_made";
  readonly agent_id?: string;
  readonly artifact_id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
  readonly call_id?: string;
}

/** What one request to a model cost. */
export interface Usage {
  readonly kind: "usage";
  readonly agent_id?: string;
  readonly model?: string;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
}

/** The answer of the run. `message_id` names the text message that it repeats; None means it was never streamed. */
export interface FinalAnswer {
  readonly kind: "final_answer";
  readonly agent_id?: string;
  readonly content?: JsonValue;
  readonly message_id?: string;
  readonly title?: string;
  readonly sources?: readonly string[];
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** Terminal: the agent came to its end. `code` says so if it was a limit, e.g. `max_steps`. */
export interface RunFinished {
  readonly kind: "run_finished";
  readonly agent_id?: string;
  readonly code?: string;
}

/** Terminal: it broke. `error_id` stands beside the whole story in the server's log. */
export interface RunFailed {
  readonly kind: "run_failed";
  readonly agent_id?: string;
  readonly code: string;
  readonly message: string;
  readonly error_id?: string;
}

/** Terminal: somebody stopped it. */
export interface RunCancelled {
  readonly kind: "run_cancelled";
  readonly agent_id?: string;
  readonly reason?: string;
}

/** What a log holds. */
export type AnyEvent =
  | RunStarted
  | Status
  | TextDelta
  | TextFinished
  | ReasoningDelta
  | ReasoningFinished
  | PlanDelta
  | Plan
  | StepStarted
  | StepFinished
  | ToolStarted
  | ToolArgsDelta
  | ToolReady
  | ToolOutputDelta
  | ToolFinished
  | AgentStarted
  | AgentFinished
  | ApprovalRequested
  | ApprovalResolved
  | SourceCited
  | ArtifactMade
  | Usage
  | FinalAnswer
  | RunFinished
  | RunFailed
  | RunCancelled;

/** What ends a run. */
export type Terminal = RunFinished | RunFailed | RunCancelled;

export type EventKind = AnyEvent["kind"];

/** An Event in the log: numbered 1, 2, 3 … per session, with the run it belongs to and the time (ms). */
export interface LogRecord {
  readonly seq: number;
  readonly run_id: string;
  readonly at: number;
  readonly event: AnyEvent;
}
