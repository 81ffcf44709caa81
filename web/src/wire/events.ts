// `make types` generates this file from src/limelight/events.py. Do not edit it.
// A field that is absent has its default: "", 0, false or nothing, unless its comment says otherwise.

/** Any JSON value, such as an argument or a result of a tool. */
export type JsonValue = JsonObject | readonly JsonValue[] | string | number | boolean | null;

export interface JsonObject {
  readonly [key: string]: JsonValue;
}

export type TodoStatus = "pending" | "in_progress" | "completed";

export type OutputStream = "stdout" | "stderr";

export type Decision = "approve" | "edit" | "reject";

export type RequestedDecision = "approve" | "edit" | "reject" | "respond";

export type Outcome = "" | "failed" | "stopped" | "rejected";

/** One item of a plan. */
export interface Todo {
  readonly content: string;
  readonly status: TodoStatus;
}

/** A file or image in the user's message. If the message contained the bytes, they are stored as an artifact. */
export interface Attachment {
  readonly media_type: string;
  readonly name?: string;
  readonly artifact_id?: string;
  readonly url?: string;
}

/** The title and the URL of one source of an answer. `title` is "" if the source is only a URL. */
export interface SourceLink {
  readonly title: string;
  /** The URL, which begins with `http://` or `https://`; "" if the source has none. */
  readonly url: string;
}

/** The run began: the agent, the user's input, and the settings that a dialect needs to encode the run. */
export interface RunStarted {
  readonly kind: "run_started";
  readonly agent_id?: string;
  readonly agent: string;
  readonly input?: string;
  /** Absent: `1`. */
  readonly turn?: number;
  /** False if the agent is configured to send complete texts instead of deltas. Absent: `true`. */
  readonly enable_streaming?: boolean;
  /** The name of the source, e.g. `smolagents`. */
  readonly framework?: string;
  /** Names of the tools that run Python code, if the agent's settings list them. */
  readonly python_tools?: readonly string[];
  /** The `traceparent` header (W3C Trace Context) of the request that started the run. */
  readonly traceparent?: string;
  readonly attachments?: readonly Attachment[];
  /** The values of the request's input object. Large ones are left out here, and are part of `input` as text. */
  readonly input_values?: JsonObject;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** A short text for people about the progress of the run. It contains no results. */
export interface Status {
  readonly kind: "status";
  readonly agent_id?: string;
  readonly text: string;
}

/** The next part of a text message. The first delta with a `message_id` opens the message. */
export interface TextDelta {
  readonly kind: "text_delta";
  readonly agent_id?: string;
  readonly message_id: string;
  readonly text: string;
}

/** The text message is complete. Its text is the joined text of its deltas. */
export interface TextFinished {
  readonly kind: "text_finished";
  readonly agent_id?: string;
  readonly message_id: string;
}

/** The next part of the agent's reasoning. The first delta with a `message_id` opens the message. */
export interface ReasoningDelta {
  readonly kind: "reasoning_delta";
  readonly agent_id?: string;
  readonly message_id: string;
  readonly text: string;
}

/** The reasoning message is complete. */
export interface ReasoningFinished {
  readonly kind: "reasoning_finished";
  readonly agent_id?: string;
  readonly message_id: string;
}

/** The next part of a plan text, sent while the agent writes it. A `plan` event with the complete plan follows. */
export interface PlanDelta {
  readonly kind: "plan_delta";
  readonly agent_id?: string;
  readonly text: string;
  readonly update?: boolean;
}

/** The agent's plan, as text or as items. `update` is False for the first plan of a run. */
export interface Plan {
  readonly kind: "plan";
  readonly agent_id?: string;
  readonly text?: string;
  readonly items?: readonly Todo[];
  readonly update?: boolean;
  readonly truncated?: boolean;
}

/** The agent's loop began a step. */
export interface StepStarted {
  readonly kind: "step_started";
  readonly agent_id?: string;
  readonly number: number;
  /** Absent: `"action"`. */
  readonly step_kind?: string;
}

/** The step ended. The event has token counts if the framework reports them. */
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
  readonly outcome?: Outcome;
}

/**
 * A tool call began. `args` is None while the arguments stream, and a text if they are not a JSON object.
 *
 * The server derives `summary`, `language` and `code_key` from the name and the arguments (`display_fields.py`);
 * sources leave them empty.
 */
export interface ToolStarted {
  readonly kind: "tool_started";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly name: string;
  readonly args?: JsonObject | string;
  /** The argument that describes the call best, as one line of at most 80 characters. */
  readonly summary?: string;
  /** The language of the code that the call runs: "" if it runs no code, "text" if the language is not known. */
  readonly language?: string;
  /** The name of the argument that contains the code. */
  readonly code_key?: string;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** The next part of the JSON text of a call's arguments. */
export interface ToolArgsDelta {
  readonly kind: "tool_args_delta";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly text: string;
}

/**
 * The arguments of a call are complete: the tool runs now, or waits for an approval.
 *
 * `summary`, `language` and `code_key` are derived as in `ToolStarted`.
 */
export interface ToolReady {
  readonly kind: "tool_ready";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly args: JsonObject | string;
  readonly summary?: string;
  readonly language?: string;
  readonly code_key?: string;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** The next part of the output of a running tool. */
export interface ToolOutputDelta {
  readonly kind: "tool_output_delta";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly text: string;
  /** Absent: `"stdout"`. */
  readonly stream?: OutputStream;
}

/**
 * The tool call ended. If it failed, `error` is the error message, and `result` is "Error: " and that message.
 *
 * A call without an error succeeded, unless `result_seen` is False: then it is unknown whether it succeeded. A call
 * with an error failed, unless `outcome` is set: then it was stopped or rejected. The server sets `outcome`; sources
 * may leave it empty.
 */
export interface ToolFinished {
  readonly kind: "tool_finished";
  readonly agent_id?: string;
  readonly call_id: string;
  readonly result?: JsonValue;
  readonly error?: string;
  readonly outcome?: Outcome;
  /** False if the agent ended without reporting a result; `result` is then "No result seen". Absent: `true`. */
  readonly result_seen?: boolean;
  readonly duration_ms?: number;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/**
 * A sub-agent started. `agent_id` is its id, `parent_id` the parent agent, `call_id` the call that started it.
 *
 * The server derives `task` from the arguments of that call (`display_fields.py`), unless the source sets it.
 */
export interface AgentStarted {
  readonly kind: "agent_started";
  readonly agent_id?: string;
  readonly name: string;
  readonly parent_id?: string;
  readonly call_id?: string;
  /** The task of the sub-agent, as text of at most 2,000 characters; "" if it is not known. */
  readonly task?: string;
  /** What distinguishes the sub-agent from others with its name: its main input, or a number; "" if nothing does. */
  readonly title?: string;
  /** Whether the sub-agent is a branch: a part of its parent's work that runs beside other parts of it. */
  readonly branch?: boolean;
}

/** The sub-agent ended. Its report is the result of the tool call that started the sub-agent. */
export interface AgentFinished {
  readonly kind: "agent_finished";
  readonly agent_id?: string;
  readonly error?: string;
  readonly outcome?: Outcome;
}

/**
 * The agent waits for the decision of a person. `expires_at` is in ms since the epoch.
 *
 * A request with an `answer_schema` is also a question: the person may send an answer, which counts as an `edit`.
 * `summary`, `language` and `code_key` are derived as in `ToolStarted`.
 */
export interface ApprovalRequested {
  readonly kind: "approval_requested";
  readonly agent_id?: string;
  readonly approval_id: string;
  readonly name: string;
  readonly args: JsonObject | string;
  readonly summary?: string;
  readonly language?: string;
  readonly code_key?: string;
  readonly call_id?: string;
  /** Absent: `["approve", "edit", "reject"]`. */
  readonly decisions?: readonly Decision[];
  /** What the agent asks, in its own words; "" if it only names the tool and the arguments. */
  readonly question?: string;
  /** The JSON Schema of an answer; `{}` accepts any value, and None means that the request takes no answer. */
  readonly answer_schema?: JsonObject;
  /** The JSON Schema of the arguments, for a form in which a person edits them; None if it is not known. */
  readonly args_schema?: JsonObject;
  readonly expires_at?: number;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/**
 * The approval was decided by a person, expired or was withdrawn. `by` is the user, or `system`.
 *
 * `args` are the edited arguments, or the answer: `{"value": answer}`. `summary`, `language` and `code_key` are
 * derived as in `ToolStarted`.
 */
export interface ApprovalResolved {
  readonly kind: "approval_resolved";
  readonly agent_id?: string;
  readonly approval_id: string;
  readonly decision: Decision;
  readonly args?: JsonObject | string;
  /** Whether the person has answered the question of the request. The decision is then `edit`. */
  readonly answered?: boolean;
  readonly summary?: string;
  readonly language?: string;
  readonly code_key?: string;
  readonly reason?: string;
  readonly by?: string;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** A source that the agent cites. */
export interface SourceCited {
  readonly kind: "source_cited";
  readonly agent_id?: string;
  readonly title: string;
  readonly url?: string;
  readonly text?: string;
  readonly truncated?: boolean;
}

/** The agent made a file. Its bytes are in the store under `artifact_id`. */
export interface ArtifactMade {
  readonly kind: "artifact_made";
  readonly agent_id?: string;
  readonly artifact_id: string;
  readonly name: string;
  readonly media_type: string;
  readonly size: number;
  readonly call_id?: string;
}

/** The token counts of one request to a model. */
export interface Usage {
  readonly kind: "usage";
  readonly agent_id?: string;
  readonly model?: string;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
}

/**
 * The answer of the run. `message_id` is the text message that the answer repeats; None if it was not streamed.
 *
 * If the agent's answer is an object, or the text of one, with a title, a content and sources, the server moves these
 * to the fields of the event (`structured_answers.py`).
 */
export interface FinalAnswer {
  readonly kind: "final_answer";
  readonly agent_id?: string;
  readonly content?: JsonValue;
  readonly message_id?: string;
  readonly title?: string;
  readonly sources?: readonly string[];
  /** The title and the URL of each source, in the order of `sources`. The server derives them. */
  readonly source_links?: readonly SourceLink[];
  /** The answer as an object, if the agent answered with one that contains more than the other fields. */
  readonly data?: JsonObject;
  readonly truncated?: boolean;
  readonly size?: number;
  readonly result_url?: string;
}

/** Terminal event: the agent finished. `code` names the limit that ended the run, e.g. `max_steps`; "" if none. */
export interface RunFinished {
  readonly kind: "run_finished";
  readonly agent_id?: string;
  readonly code?: string;
}

/** Terminal event: the run failed. The server's log has the complete error under `error_id`. */
export interface RunFailed {
  readonly kind: "run_failed";
  readonly agent_id?: string;
  readonly code: string;
  readonly message: string;
  readonly error_id?: string;
}

/** Terminal event: the run was stopped. */
export interface RunCancelled {
  readonly kind: "run_cancelled";
  readonly agent_id?: string;
  readonly reason?: string;
}

/** Any event of a log. */
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

/** An event that ends a run. */
export type Terminal = RunFinished | RunFailed | RunCancelled;

export type EventKind = AnyEvent["kind"];

/** An event in the log: `seq` counts 1, 2, 3 … per session, `at` is the time in ms since the epoch. */
export interface LogRecord {
  readonly seq: number;
  readonly run_id: string;
  readonly at: number;
  readonly event: AnyEvent;
}
