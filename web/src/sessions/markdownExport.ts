/** Exports a session as a Markdown document: each question with its steps and its answer. Pure. */

import { formatDuration, plural, valueText } from "../log/displayText";
import { type AgentView, type Item, type RunView, startedAgents, type ToolItem } from "../log/viewModel";
import { STATE_LABELS } from "../ui/StateIcon";
import type { JsonValue } from "../wire/events";

export function toMarkdown(title: string, runs: readonly RunView[]): string {
  const parts = [`# ${oneLine(title) || "Conversation"}`, ...runs.flatMap(runParts)];
  return `${parts.filter((part) => part !== "").join("\n\n")}\n`;
}

function runParts(run: RunView): string[] {
  return [
    "## Question",
    quote(run.input),
    ...stepParts(run),
    `## ${oneLine(run.agent) || "Answer"}`,
    ...answerParts(run),
  ];
}

function stepParts(run: RunView): string[] {
  const steps = stepLines(run, run.agents.get(""), "");
  if (steps.length === 0) return [];
  const took = run.endedAt === null ? "" : `, ${formatDuration(run.endedAt - run.startedAt)}`;
  return [`### Execution steps (${plural(run.tools, "tool")}${took})`, steps.join("\n")];
}

/** The tool calls of an agent as a list. Calls of a sub-agent are nested below the call that started it. */
function stepLines(run: RunView, agent: AgentView | undefined, indent: string): string[] {
  const items = (agent?.items ?? []).map((at) => run.items[at]).filter((item) => item !== undefined);
  return items.flatMap((item) => itemLines(run, item, indent));
}

function itemLines(run: RunView, item: Item, indent: string): string[] {
  const agents = (inner: string) => startedAgents(run, item).flatMap((agent) => agentLines(run, agent, inner));
  if (item.kind === "tool") return [`${indent}- ${toolLine(item)}`, ...agents(`${indent}  `)];
  if (item.kind === "agent") return agents(indent);
  if (item.kind === "artifact") return [`${indent}- file ${inlineCode(item.name)}`];
  return [];
}

function agentLines(run: RunView, agent: AgentView, indent: string): string[] {
  const state = agent.state === "done" ? "" : ` (${STATE_LABELS[agent.state]})`;
  return [`${indent}- sub-agent ${inlineCode(agent.name)}${state}`, ...stepLines(run, agent, `${indent}  `)];
}

function toolLine(tool: ToolItem): string {
  const about = tool.summary;
  const took = tool.durationMs === null ? [] : [formatDuration(tool.durationMs)];
  const state = tool.state === "done" ? [] : [STATE_LABELS[tool.state]];
  const notes = [...state, ...took].join(", ");
  const error = tool.error === null ? "" : `: ${inlineCode(tool.error)}`;
  return `${inlineCode(tool.name)}${about ? ` ${inlineCode(about)}` : ""}${notes ? ` (${notes})` : ""}${error}`;
}

function answerParts(run: RunView): string[] {
  const { answer } = run;
  const answerBody = answer === null ? mainAgentTexts(run) : answerText(answer.content);
  const title = answer?.title ? [`### ${oneLine(answer.title)}`] : [];
  const sources = (answer?.sources ?? []).map((source) => `- ${oneLine(source)}`).join("\n");
  return [...title, answerBody.trim(), sources && `Sources:\n\n${sources}`, outcomeLine(run)];
}

function answerText(content: JsonValue): string {
  return typeof content === "string" ? content : `\`\`\`json\n${valueText(content)}\n\`\`\``;
}

/** The texts of the main agent, for a run without an answer. */
function mainAgentTexts(run: RunView): string {
  return run.items.flatMap((item) => (item.kind === "text" && item.agentId === "" ? [item.text] : [])).join("\n\n");
}

function outcomeLine(run: RunView): string {
  if (run.state === "failed") return quote(`Failed: ${run.failure?.message ?? ""}`);
  if (run.state === "cancelled") return quote(`Stopped${run.reason ? `: ${run.reason}` : ""}`);
  if (run.state === "running") return quote("Still running");
  return run.state === "waiting" ? quote("Waiting for a person") : "";
}

function quote(text: string): string {
  return text
    .trim()
    .split("\n")
    .map((row) => `> ${row}`.trimEnd())
    .join("\n");
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

/** A text as Markdown inline code, also if the text contains backticks. */
function inlineCode(text: string): string {
  const plain = oneLine(text);
  const longest = Math.max(0, ...[...plain.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = "`".repeat(longest + 1);
  return longest === 0 ? `${fence}${plain}${fence}` : `${fence} ${plain} ${fence}`;
}
