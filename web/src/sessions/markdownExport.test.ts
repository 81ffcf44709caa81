import { expect, test } from "vitest";
import { reduce } from "../log/reduce";
import { EMPTY } from "../log/viewModel";
import { dialectTranscripts, sourceTranscripts } from "../testing/goldenTranscripts";
import type { AnyEvent, LogRecord } from "../wire/events";
import { toMarkdown } from "./markdownExport";

function of(events: readonly AnyEvent[]): string {
  const records: LogRecord[] = events.map((event, at) => ({ seq: at + 1, run_id: "run_1", at: 1000 * at, event }));
  return toMarkdown("Bees", reduce(EMPTY, records).runs);
}

test("a document has the question, the steps and the answer", () => {
  const text = of([
    { kind: "run_started", agent: "deep", input: "What do\nbees do?" },
    { kind: "tool_started", call_id: "1", name: "ls", args: { path: "/" }, summary: "/" },
    { kind: "tool_finished", call_id: "1", result: "x", duration_ms: 100 },
    { kind: "tool_started", call_id: "2", name: "task", args: { description: "Look" }, summary: "Look" },
    { kind: "agent_started", agent_id: "r-1", name: "researcher", call_id: "2" },
    {
      kind: "tool_started",
      agent_id: "r-1",
      call_id: "3",
      name: "search",
      args: { query: "`bees`" },
      summary: "`bees`",
    },
    { kind: "tool_finished", agent_id: "r-1", call_id: "3", result: "", error: "not\nfound", duration_ms: 1500 },
    { kind: "agent_finished", agent_id: "r-1" },
    { kind: "tool_finished", call_id: "2", result: "y", duration_ms: 4000 },
    { kind: "final_answer", content: "They **dance**.", title: "Bees", sources: ["https://example.org"] },
    { kind: "run_finished" },
  ]);
  expect(text).toBe(`# Bees

## Question

> What do
> bees do?

### Execution steps (3 tools, 10 s)

- \`ls\` \`/\` (0.1 s)
- \`task\` \`Look\` (4.0 s)
  - sub-agent \`researcher\`
    - \`search\` \`\` \`bees\` \`\` (failed, 1.5 s): \`not found\`

## deep

### Bees

They **dance**.

Sources:

- https://example.org
`);
});

test("a document shows failures, stops and structured answers", () => {
  const begun: AnyEvent = { kind: "run_started", agent: "a", input: "q" };
  expect(of([begun, { kind: "run_failed", code: "agent_error", message: "It broke" }])).toContain("> Failed: It broke");
  expect(of([begun, { kind: "run_cancelled", reason: "enough" }])).toContain("> Stopped: enough");
  expect(of([begun])).toContain("> Still running");
  expect(of([begun, { kind: "final_answer", content: { sum: 3 } }])).toContain('```json\n{\n  "sum": 3\n}\n```');
});

test("a document without an answer has the texts of the agent", () => {
  const text = of([
    { kind: "run_started", agent: "a", input: "q" },
    { kind: "text_delta", message_id: "m", text: "Hello " },
    { kind: "text_delta", message_id: "m", text: "there" },
  ]);
  expect(text).toContain("Hello there");
});

test.each([...dialectTranscripts(), ...sourceTranscripts()])("$name becomes a document", ({ records }) => {
  const { runs } = reduce(EMPTY, records);
  const text = toMarkdown("t", runs);
  expect(text.match(/^## Question$/gm)).toHaveLength(runs.length);
  const tools = text.match(/^ *- `/gm)?.length ?? 0;
  expect(tools).toBe(runs.reduce((sum, run) => sum + run.items.filter((item) => item.kind === "tool").length, 0));
});
