/** The reducer: applies the records of the log to the view of a session. Pure; handles every kind of event. */

import type { AgentFinished, AgentStarted, AnyEvent, LogRecord, Plan, PlanDelta, RunStarted } from "../wire/events";
import { MutableRun } from "./mutableRun";
import * as toolCalls from "./toolCalls";
import type { AgentView, Gap, RunView, SessionView } from "./viewModel";
import { addTokens, endState, NO_TOKENS, truncationOf } from "./viewModel";

/** Returns the view after these records. Records that the view already contains are skipped. */
export function reduce(view: SessionView, records: readonly LogRecord[]): SessionView {
  const runs = view.runs.slice();
  const drafts = new Map<string, MutableRun>();
  let seq = view.seq;
  for (const record of records) {
    if (record.seq <= seq) continue;
    seq = record.seq;
    let draft = drafts.get(record.run_id);
    if (draft === undefined) {
      const place = runs.findLastIndex((run) => run.runId === record.run_id);
      draft = new MutableRun(runs[place] ?? newRun(record));
      if (place >= 0) runs[place] = draft.run;
      else runs.push(draft.run);
      drafts.set(record.run_id, draft);
    }
    draft.run.lastAt = record.at;
    applyEvent(draft, record.event, record.at);
  }
  return seq === view.seq ? view : { ...view, runs, seq };
}

/** Returns the view with a gap: a range of records that the server no longer stores. */
export function addGap(view: SessionView, gap: Gap): SessionView {
  return gap.to <= view.seq ? view : { ...view, seq: gap.to, gaps: [...view.gaps, gap] };
}

/** Returns an empty run that starts at the time of `record`, its first record. `run_started` may be missing. */
function newRun(record: LogRecord): RunView {
  return {
    runId: record.run_id,
    agent: "",
    input: "",
    inputTruncation: null,
    inputValues: null,
    attachments: [],
    turn: 0,
    state: "running",
    startedAt: record.at,
    endedAt: null,
    lastAt: record.at,
    code: "",
    reason: "",
    failure: null,
    items: [],
    agents: new Map([["", newAgent({ kind: "agent_started", name: "" }, "", record.at)]]),
    answer: null,
    tools: 0,
    codes: [],
    terminal: [],
    open: new Map(),
  };
}

function newAgent(event: AgentStarted, label: string, at: number): AgentView {
  return {
    agentId: event.agent_id ?? "",
    name: event.name,
    label,
    isBranch: event.branch ?? false,
    parentId: event.parent_id ?? "",
    callId: event.call_id ?? "",
    task: event.task ?? "",
    startedAt: at,
    endedAt: null,
    state: "running",
    error: null,
    status: "",
    model: "",
    usage: NO_TOKENS,
    stepUsage: NO_TOKENS,
    tools: 0,
    items: [],
  };
}

function applyEvent(draft: MutableRun, event: AnyEvent, at: number): void {
  const agentId = event.agent_id ?? "";
  switch (event.kind) {
    case "run_started":
      return startRun(draft, event, at);
    case "status":
      return setStatus(draft, agentId, event.text, at);
    case "text_delta":
      return appendText(draft, "text", agentId, event.message_id, event.text, at);
    case "reasoning_delta":
      return appendText(draft, "thought", agentId, event.message_id, event.text, at);
    case "text_finished":
      return endMessage(draft, "text", event.message_id, at);
    case "reasoning_finished":
      return endMessage(draft, "thought", event.message_id, at);
    case "plan_delta":
      return appendPlan(draft, agentId, event, at);
    case "plan":
      return setPlan(draft, agentId, event, at);
    case "step_started":
    case "step_finished":
      return applyStep(draft, agentId, event, at);
    case "tool_started":
      return toolCalls.startCall(draft, event, at);
    case "tool_args_delta":
      return toolCalls.appendArgs(draft, event);
    case "tool_ready":
      return toolCalls.setArgs(draft, event, at);
    case "tool_output_delta":
      return toolCalls.appendOutput(draft, event);
    case "tool_finished":
      return toolCalls.finishCall(draft, event, at);
    case "approval_requested":
      return toolCalls.requestApproval(draft, event, at);
    case "approval_resolved":
      return toolCalls.resolveApproval(draft, event, at);
    case "agent_started":
      return startAgent(draft, event, at);
    case "agent_finished":
      return finishAgent(draft, agentId, event, at);
    case "source_cited":
      draft.add({ kind: "source", agentId, at, title: event.title, url: event.url ?? "", text: event.text ?? "" });
      return;
    case "artifact_made":
      draft.add({
        kind: "artifact",
        agentId,
        at,
        artifactId: event.artifact_id,
        name: event.name,
        mediaType: event.media_type,
        size: event.size,
        callId: event.call_id ?? "",
      });
      return;
    case "usage":
      return addUsage(draft, agentId, event);
    case "final_answer":
      return setAnswer(draft, event);
    case "run_finished":
      draft.run.code = event.code ?? "";
      return endRun(draft, "finished", at);
    case "run_failed":
      draft.run.failure = { code: event.code, message: event.message, errorId: event.error_id ?? "" };
      return endRun(draft, "failed", at);
    case "run_cancelled":
      draft.run.reason = event.reason ?? "";
      return endRun(draft, "cancelled", at);
    default:
      // Events of unknown kinds, which a newer server may send, are skipped.
      event satisfies never;
  }
}

function startRun(draft: MutableRun, event: RunStarted, at: number): void {
  const { run } = draft;
  run.agent = event.agent;
  run.input = event.input ?? "";
  run.inputTruncation = truncationOf(event);
  run.inputValues = event.input_values ?? null;
  run.attachments = event.attachments ?? [];
  run.turn = event.turn ?? 1;
  run.startedAt = at;
  const main = draft.agent("");
  if (main) main.name = main.label = event.agent;
}

function setStatus(draft: MutableRun, agentId: string, text: string, at: number): void {
  if (draft.run.agents.get(agentId)?.status === text) return;
  const agent = draft.agent(agentId);
  if (agent === null) return;
  agent.status = text;
  draft.add({ kind: "status", agentId, at, text });
}

function appendText(
  draft: MutableRun,
  kind: "text" | "thought",
  agentId: string,
  messageId: string,
  text: string,
  at: number,
): void {
  const name = `${kind} ${messageId}`;
  const message = draft.edit(draft.find(name), "text", "thought");
  if (message) message.text += text;
  else draft.add({ kind, agentId, at, messageId, text, endedAt: null }, name);
}

function endMessage(draft: MutableRun, kind: "text" | "thought", messageId: string, at: number): void {
  const message = draft.edit(draft.close(`${kind} ${messageId}`), "text", "thought");
  if (message) message.endedAt = at;
}

function appendPlan(draft: MutableRun, agentId: string, event: PlanDelta, at: number): void {
  const name = `plan ${agentId}`;
  const growing = draft.edit(draft.find(name), "plan");
  if (growing) growing.text += event.text;
  else draft.add({ kind: "plan", agentId, at, text: event.text, update: event.update ?? false, isGrowing: true }, name);
}

/** Applies a plan event. If the event's text is truncated, the longer text from its deltas stays. */
function setPlan(draft: MutableRun, agentId: string, event: Plan, at: number): void {
  const grown = endPlan(draft, agentId);
  if (grown && event.text) grown.text = event.truncated && grown.text.startsWith(event.text) ? grown.text : event.text;
  else if (event.text)
    draft.add({ kind: "plan", agentId, at, text: event.text, update: event.update ?? false, isGrowing: false });
  if (!event.items?.length) return;
  const name = `todos ${agentId}`;
  const list = draft.edit(draft.find(name), "todos");
  if (list) list.todos = event.items;
  else draft.add({ kind: "todos", agentId, at, state: "running", todos: event.items }, name);
}

/** Marks the agent's streaming plan as complete and returns it; null if no plan was streaming. */
function endPlan(draft: MutableRun, agentId: string) {
  const grown = draft.edit(draft.close(`plan ${agentId}`), "plan");
  if (grown) grown.isGrowing = false;
  return grown;
}

function applyStep(
  draft: MutableRun,
  agentId: string,
  event: Extract<AnyEvent, { kind: "step_started" | "step_finished" }>,
  at: number,
): void {
  const name = `step ${agentId}`;
  if (event.kind === "step_started") {
    const unknown = { endedAt: null, durationMs: null, tokens: null, error: null };
    const stepKind = event.step_kind ?? "action";
    draft.add({ kind: "step", agentId, at, number: event.number, stepKind, state: "running", ...unknown }, name);
    return;
  }
  endPlan(draft, agentId);
  const open = draft.edit(draft.close(name), "step");
  if (open === null) return;
  open.endedAt = at;
  open.error = event.error ?? null;
  open.state = endState(event);
  open.durationMs = event.duration_ms ?? null;
  if (event.input_tokens == null && event.output_tokens == null) return;
  open.tokens = { input: event.input_tokens ?? 0, output: event.output_tokens ?? 0 };
  const agent = draft.agent(agentId);
  if (agent) agent.stepUsage = addTokens(agent.stepUsage, open.tokens);
}

function startAgent(draft: MutableRun, event: Extract<AnyEvent, { kind: "agent_started" }>, at: number): void {
  const agentId = event.agent_id ?? "";
  const parentId = event.parent_id ?? "";
  draft.addAgent(newAgent(event, labelOf(draft.run, event.name, event.title ?? ""), at));
  const call = draft.edit(draft.find(`tool ${event.call_id ?? ""}`), "tool");
  if (call) call.agentIds = [...call.agentIds, agentId];
  else draft.add({ kind: "agent", agentId: parentId, at, childId: agentId });
}

/** Returns the label of a sub-agent that starts, which differs from those of the running sub-agents. */
function labelOf(run: RunView, name: string, title: string): string {
  if (title !== "") return `${name} · ${title}`;
  const same = [...run.agents.values()].filter((agent) => agent.agentId !== "" && agent.name === name);
  return same.some((agent) => agent.endedAt === null) ? `${name} ${same.length + 1}` : name;
}

function finishAgent(draft: MutableRun, agentId: string, event: AgentFinished, at: number): void {
  const agent = draft.agent(agentId);
  if (agent === null) return;
  agent.endedAt = at;
  agent.error = event.error ?? null;
  agent.state = endState(event);
  endPlan(draft, agentId);
  draft.endTodos(agentId, agent.error === null);
}

function addUsage(draft: MutableRun, agentId: string, event: Extract<AnyEvent, { kind: "usage" }>): void {
  const agent = draft.agent(agentId);
  if (agent === null) return;
  agent.usage = addTokens(agent.usage, { input: event.input_tokens ?? 0, output: event.output_tokens ?? 0 });
  agent.model = event.model || agent.model;
}

function setAnswer(draft: MutableRun, event: Extract<AnyEvent, { kind: "final_answer" }>): void {
  const item = draft.run.items.findLastIndex((one) => one.kind === "text" && one.messageId === event.message_id);
  draft.run.answer = {
    content: event.content ?? "",
    title: event.title ?? "",
    sources: event.sources ?? [],
    sourceLinks: event.source_links ?? [],
    truncation: truncationOf(event),
    item: item < 0 ? null : item,
  };
}

function endRun(draft: MutableRun, state: "finished" | "failed" | "cancelled", at: number): void {
  draft.run.state = state;
  draft.run.endedAt = at;
  draft.endTodos("", state === "finished");
  draft.closeOpenItems(at);
  const main = draft.agent("");
  if (main === null) return;
  main.endedAt = at;
  main.state = state === "finished" ? "done" : state === "failed" ? "failed" : "stopped";
}
