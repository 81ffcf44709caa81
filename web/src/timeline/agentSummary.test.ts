import { expect, it } from "vitest";
import { goldenSession, onlyRun, START, sampleRun } from "../testing/sampleRuns";
import { summarize } from "./agentSummary";

it("agents are listed after their parent", () => {
  const { agents, tools } = summarize(onlyRun(goldenSession("sub_agents")), 0);
  expect(agents.map((agent) => `${"  ".repeat(agent.depth)}${agent.name} ${agent.ms} ${agent.tools}`)).toEqual([
    "demo 66 2",
    "  researcher 42 0",
    "    reader 21 1",
    "  critic 27 0",
  ]);
  expect(tools).toBe(3);
  expect(agents[1]?.share).toBeCloseTo(42 / 66);
});

it("tokens are those of requests, or of steps without requests", () => {
  const run = sampleRun(
    [0, { kind: "step_started", number: 1 }],
    [1, { kind: "usage", model: "m", input_tokens: 100, output_tokens: 10 }],
    [1, { kind: "step_finished", number: 1, input_tokens: 100, output_tokens: 10 }],
    [1, { kind: "agent_started", agent_id: "a1", name: "sub" }],
    [1, { kind: "step_started", number: 1, agent_id: "a1" }],
    [2, { kind: "step_finished", number: 1, input_tokens: 7, output_tokens: 3, agent_id: "a1" }],
  );
  const { agents, tokens, ms } = summarize(run, START + 4000);
  expect(tokens).toEqual({ input: 107, output: 13 });
  expect(agents[0]).toMatchObject({ model: "m", share: 1, ms: 4000 });
  expect(agents[1]).toMatchObject({ ms: 3000, state: "running" });
  expect(ms).toBe(4000);
});

it("an agent with an unknown parent belongs to the main agent", () => {
  const run = sampleRun(
    [1, { kind: "agent_started", agent_id: "a1", name: "lost", parent_id: "gone" }],
    [2, { kind: "run_finished" }],
  );
  expect(summarize(run, 0).agents[1]).toMatchObject({ name: "lost", depth: 1, state: "stopped" });
});
