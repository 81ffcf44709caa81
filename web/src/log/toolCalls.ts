/** Applies the events of tool calls and approvals to a run. */

import type {
  ApprovalRequested,
  ApprovalResolved,
  ToolArgsDelta,
  ToolFinished,
  ToolOutputDelta,
  ToolReady,
  ToolStarted,
} from "../wire/events";
import { codeOf } from "./codeArguments";
import { callLine, valueText } from "./displayText";
import type { MutableRun, MutableToolItem } from "./mutableRun";
import type { OutputPiece } from "./viewModel";
import { endState, truncationOf } from "./viewModel";

/** Number of characters of a call's output that stay in memory. The output is trimmed when it exceeds twice as much. */
export const MAX_OUTPUT = 1024 * 1024;

export function startCall(draft: MutableRun, event: ToolStarted, at: number): void {
  const agentId = event.agent_id ?? "";
  const index = draft.add(
    {
      kind: "tool",
      agentId,
      at,
      callId: event.call_id,
      name: event.name,
      args: event.args ?? null,
      argsText: "",
      argsTruncation: truncationOf(event),
      ...derivedFields(event),
      state: "running",
      ranAt: at,
      endedAt: null,
      durationMs: null,
      output: [],
      outputDropped: 0,
      result: "",
      resultTruncation: null,
      error: null,
      agentIds: [],
      approval: null,
      step: draft.stepOf(agentId),
    },
    `tool ${event.call_id}`,
  );
  draft.run.tools += 1;
  const agent = draft.agent(agentId);
  if (agent) agent.tools += 1;
  const tool = draft.edit(index, "tool");
  if (tool && event.args != null) addToPanes(draft, tool);
}

export function appendArgs(draft: MutableRun, event: ToolArgsDelta): void {
  const tool = openCall(draft, event.call_id);
  if (tool) tool.argsText += event.text;
}

export function setArgs(draft: MutableRun, event: ToolReady, at: number): void {
  const tool = openCall(draft, event.call_id);
  if (tool === null) return;
  Object.assign(tool, derivedFields(event));
  tool.args = event.args;
  tool.argsText = "";
  tool.argsTruncation = truncationOf(event);
  tool.ranAt = at;
  addToPanes(draft, tool);
}

/** Adds a call with complete arguments to the terminal and, if it has code, to the code pane. */
function addToPanes(draft: MutableRun, tool: MutableToolItem): void {
  if (codeOf(tool) !== null) draft.run.codes = [...draft.run.codes, tool.index];
  draft.appendTerminal(tool.index, "call", callLine(tool));
}

export function appendOutput(draft: MutableRun, event: ToolOutputDelta): void {
  const tool = openCall(draft, event.call_id);
  if (tool === null) return;
  const stream = event.stream ?? "stdout";
  const printed = draft.outputOf(tool);
  append(printed.pieces, { stream, text: event.text });
  printed.size += event.text.length;
  if (printed.size > 2 * MAX_OUTPUT) {
    const kept = tailOf(printed.pieces, MAX_OUTPUT);
    printed.pieces.length = 0;
    for (const piece of kept) printed.pieces.push(piece);
    tool.outputDropped += printed.size - MAX_OUTPUT;
    printed.size = MAX_OUTPUT;
  }
  draft.appendTerminal(tool.index, stream, event.text);
}

export function finishCall(draft: MutableRun, event: ToolFinished, at: number): void {
  const tool = draft.edit(draft.close(`tool ${event.call_id}`), "tool");
  if (tool === null) return;
  if (tool.args === null) {
    tool.args = tool.argsText;
    addToPanes(draft, tool);
  }
  tool.endedAt = at;
  tool.durationMs = event.duration_ms ?? null;
  tool.result = event.result ?? "";
  tool.resultTruncation = truncationOf(event);
  tool.error = event.error ?? null;
  tool.state = event.result_seen === false ? "unseen" : endState(event);
  draft.appendTerminal(tool.index, tool.error === null ? "result" : "error", valueText(tool.result));
}

export function requestApproval(draft: MutableRun, event: ApprovalRequested, at: number): void {
  const tool = openCall(draft, event.call_id ?? "");
  const index = draft.add(
    {
      kind: "approval",
      agentId: event.agent_id ?? "",
      at,
      approvalId: event.approval_id,
      callId: tool?.callId ?? "",
      name: event.name,
      args: event.args,
      ...derivedFields(event),
      argsTruncation: truncationOf(event),
      decisions: event.decisions ?? ["approve", "edit", "reject"],
      question: event.question ?? "",
      answerSchema: event.answer_schema ?? null,
      argsSchema: event.args_schema ?? null,
      expiresAt: event.expires_at ?? null,
      decision: null,
      editedArgs: null,
      answered: false,
      reason: "",
      by: "",
      decidedAt: null,
    },
    `approval ${event.approval_id}`,
  );
  if (tool) {
    tool.state = "waiting";
    tool.approval = index;
  }
  draft.run.state = "waiting";
}

export function resolveApproval(draft: MutableRun, event: ApprovalResolved, at: number): void {
  const approval = draft.edit(draft.close(`approval ${event.approval_id}`), "approval");
  if (approval === null) return;
  approval.decision = event.decision;
  approval.editedArgs = event.args ?? null;
  approval.answered = event.answered ?? false;
  approval.reason = event.reason ?? "";
  approval.by = event.by ?? "";
  approval.decidedAt = at;
  const tool = openCall(draft, approval.callId);
  if (tool) {
    tool.state = event.decision === "reject" ? "rejected" : "running";
    tool.ranAt = at;
    if (event.decision === "edit" && !approval.answered && event.args != null) {
      Object.assign(tool, derivedFields(event));
      tool.args = event.args;
      tool.argsTruncation = truncationOf(event);
    }
  }
  if (!draft.isWaiting) draft.run.state = "running";
}

/** Returns the fields of an event that the server has derived from the arguments of a call, such as the summary. */
function derivedFields(event: ToolStarted | ToolReady | ApprovalRequested | ApprovalResolved) {
  return { summary: event.summary ?? "", language: event.language ?? "", codeKey: event.code_key ?? "" };
}

/** The open call of this id, as a mutable copy; null if there is none. */
function openCall(draft: MutableRun, callId: string): MutableToolItem | null {
  return draft.edit(draft.find(`tool ${callId}`), "tool");
}

/** Appends a piece of output. Extends the last piece if it is of the same stream. */
function append(pieces: OutputPiece[], piece: OutputPiece): void {
  const last = pieces.at(-1);
  if (last === undefined || last.stream !== piece.stream) pieces.push(piece);
  else pieces[pieces.length - 1] = { stream: last.stream, text: last.text + piece.text };
}

/** Returns the last `size` characters of the output, as pieces. */
function tailOf(pieces: readonly OutputPiece[], size: number): readonly OutputPiece[] {
  let from = pieces.length;
  let room = size;
  while (from > 0 && room > 0) {
    from -= 1;
    room -= pieces[from]?.text.length ?? 0;
  }
  const [first, ...others] = pieces.slice(from);
  return first === undefined ? [] : [{ stream: first.stream, text: first.text.slice(Math.max(0, -room)) }, ...others];
}
