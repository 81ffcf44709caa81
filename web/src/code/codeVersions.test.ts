import { expect, it } from "vitest";
import { reduce } from "../log/reduce";
import { EMPTY, type RunView } from "../log/viewModel";
import { recordsOf, sourceTranscripts } from "../testing/goldenTranscripts";
import { pythonCall } from "../testing/sampleRuns";
import type { AnyEvent } from "../wire/events";
import { codeFileName, firstLine, type VersionCache, versionsOf } from "./codeVersions";

const START: AnyEvent = { kind: "run_started", agent: "a", turn: 1 };

function runsOf(...events: AnyEvent[]): readonly RunView[] {
  return reduce(EMPTY, recordsOf([START, ...events])).runs;
}

it("versions are the calls with code and the one being streamed", () => {
  const runs = runsOf(
    pythonCall("c", "one"),
    { kind: "tool_started", call_id: "d", name: "ls", args: {} },
    pythonCall("e", null),
    { kind: "tool_args_delta", call_id: "e", text: '{"code": "tw' },
    pythonCall("f", null),
  );
  expect(versionsOf(runs).map(({ code, turn }) => [turn, code.text, code.isComplete])).toEqual([
    [1, "one", true],
    [1, "tw", false],
  ]);
});

it("versions are in the order of their start", () => {
  const runs = runsOf(pythonCall("c", null), pythonCall("d", "second"), {
    kind: "tool_ready",
    call_id: "c",
    args: { code: "first" },
    summary: "first",
    language: "python",
    code_key: "code",
  });
  expect(versionsOf(runs).map(({ code }) => code.text)).toEqual(["first", "second"]);
});

it("truncated code is read as far as it goes", () => {
  const args = '{"source": "a.txt", "code": "import os\\nos.li';
  const cut = { truncated: true, size: 50_000, result_url: "/whole" };
  const runs = runsOf({ ...pythonCall("c", "import os"), args, ...cut });
  expect(versionsOf(runs)[0]?.code.text).toBe("import os\nos.li");
});

it("an unchanged version keeps its identity", () => {
  const records = recordsOf([START, pythonCall("c", "one"), { kind: "text_delta", message_id: "m", text: "x" }]);
  const before = reduce(EMPTY, records.slice(0, 2));
  const after = reduce(before, records.slice(2));
  const cache: VersionCache = new WeakMap();
  expect(versionsOf(after.runs, cache)[0]).toBe(versionsOf(before.runs, cache)[0]);
});

it("versions of a recorded agent grow while it writes", () => {
  const code = sourceTranscripts().find(({ name }) => name === "smolagents_code/code");
  let view = EMPTY;
  const seen: string[] = [];
  for (const record of code?.records ?? []) {
    view = reduce(view, [record]);
    const newest = versionsOf(view.runs).at(-1)?.code.text;
    if (newest !== undefined && newest !== seen.at(-1)) seen.push(newest);
  }
  const growing = seen.filter((text, index) => text.startsWith(seen[index - 1] ?? ""));
  expect(growing.length).toBeGreaterThan(10);
  expect(versionsOf(view.runs).length).toBeGreaterThan(1);
});

it("a version has a descriptive line and a file name", () => {
  expect(firstLine("# Count\n\nimport os\nx = 1")).toBe("x = 1");
  expect(firstLine("import os\nimport re")).toBe("import os");
  expect(firstLine("# only this")).toBe("# only this");
  expect(codeFileName(2, "python")).toBe("step-2.py");
  expect(codeFileName(3, "bash")).toBe("step-3.sh");
  expect(codeFileName(4, "rust")).toBe("step-4.txt");
});
