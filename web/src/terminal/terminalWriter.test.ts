import { describe, expect, it } from "vitest";
import { reduce } from "../log/reduce";
import { EMPTY, type RunView } from "../log/viewModel";
import { dialectTranscripts, recordsOf, sourceTranscripts, transcript } from "../testing/goldenTranscripts";
import { joinDeltas, randomChunks, seededRandom } from "../testing/recordSlices";
import { pythonCall } from "../testing/sampleRuns";
import { stripAnsi } from "../text/sanitizeAnsi";
import type { AnyEvent, LogRecord } from "../wire/events";
import { MAX_RESULT, MAX_WRITE, plainEnd, plainTranscript, TerminalWriter } from "./terminalWriter";

const E = "\u001b";
const START: AnyEvent = { kind: "run_started", agent: "deep", input: "Compare\nthe files", turn: 2 };
const CALL: AnyEvent = pythonCall("c", "print(1)");

function runsOf(...events: AnyEvent[]): readonly RunView[] {
  return reduce(EMPTY, recordsOf([START, ...events])).runs;
}

function printed(text: string, call_id = "c", stream: "stdout" | "stderr" = "stdout"): AnyEvent {
  return { kind: "tool_output_delta", call_id, text, stream };
}

function shown(...events: AnyEvent[]): string {
  return plainTranscript(runsOf(...events));
}

describe("the written text", () => {
  it("has a line for the turn, one for the call, and the output", () => {
    expect(shown(CALL, printed("1\n"), { kind: "tool_finished", call_id: "c", result: "None" })).toBe(
      "— turn 2 · Compare —\n❯ python print(1)\n1\nNone",
    );
  });

  it("starts results on a new line", () => {
    expect(shown(CALL, printed("no end of line"), { kind: "tool_finished", call_id: "c", result: "x" })).toContain(
      "no end of line\nx",
    );
  });

  it("has colours for errors and resets those of the tool", () => {
    const error: AnyEvent = { kind: "tool_finished", call_id: "c", result: "Error: bad", error: "bad" };
    const { text } = new TerminalWriter().next(runsOf(CALL, printed(`${E}[32mgreen`), error));
    expect(text).toContain(`${E}[32mgreen${E}[0m`);
    expect(text).toContain(`${E}[31mError: bad`);
  });

  it("restores the colour of stderr after a reset", () => {
    const { text } = new TerminalWriter().next(runsOf(CALL, printed(`a${E}[0mb`, "c", "stderr")));
    expect(text).toContain(`${E}[91ma${E}[0m${E}[91mb`);
  });

  it("truncates long results", () => {
    const result = "x".repeat(MAX_RESULT + 1_234);
    const text = shown(CALL, { kind: "tool_finished", call_id: "c", result });
    expect(text).toContain(`${"x".repeat(MAX_RESULT)}\n… 1,234 more characters: open the tool's row`);
    expect(text).not.toContain("x".repeat(MAX_RESULT + 1));
  });

  it("names the size of a result that the server truncated", () => {
    expect(plainTranscript(reduce(EMPTY, transcript("truncated_result")).runs)).toMatch(/… [\d.]+ kB in all: open/);
  });

  it("names the call when parallel calls write", () => {
    const other: AnyEvent = { kind: "tool_started", call_id: "d", name: "ls", args: { path: "/" }, summary: "/" };
    expect(shown(CALL, other, printed("1\n"), printed("2\n"), printed("x", "d"), printed("3", "c"))).toBe(
      "— turn 2 · Compare —\n❯ python print(1)\n❯ ls /\n[python print(1)]\n1\n2\n[ls /]\nx\n[python print(1)]\n3",
    );
  });

  it("names the sub-agent of a call", () => {
    expect(plainTranscript(reduce(EMPTY, transcript("sub_agents")).runs)).toContain(
      "❯ reader › readurl https://example.org/",
    );
  });

  it("contains no sequences from names, arguments or questions", () => {
    const evil = `${E}[2J${E}]0;x\u0007\n❯ fake`;
    const runs = reduce(
      EMPTY,
      recordsOf([
        { kind: "run_started", agent: evil, input: evil },
        { kind: "tool_started", call_id: "c", name: evil, args: { path: evil }, summary: evil },
      ]),
    ).runs;
    const { text } = new TerminalWriter().next(runs);
    expect(text).not.toMatch(/\u001b(?!\[[0-9;]*m)|\u0007/);
    expect(text.match(/\n/g)?.length).toBe(1);
  });

  it("is limited to what a terminal can hold", () => {
    const runs = runsOf(CALL, ...Array.from({ length: 50 }, (_, index) => printed(`${"y".repeat(99_999)}\n${index}`)));
    const { startOver, text } = new TerminalWriter().next(runs);
    expect(startOver).toBe(false);
    expect(text.length).toBeLessThan(1.5 * MAX_WRITE);
    expect(stripAnsi(text)).toMatch(/^… what was before is left out\n(?:.*\n)+49$/);
  });

  it("is limited across turns", () => {
    const runs = Array.from(
      { length: 4 },
      (_, turn) => reduce(EMPTY, recordsOf([START, CALL, printed(`${"y".repeat(999_999)}\n`)], `run_${turn}`)).runs,
    ).flat();
    const { text } = new TerminalWriter().next(runs);
    expect(text.length).toBeLessThan(1.5 * MAX_WRITE);
    expect(stripAnsi(text)).toMatch(/^… what was before is left out/);
  });
});

describe("new output", () => {
  const all = [...dialectTranscripts(), ...sourceTranscripts()];

  it.each(all)("joins to the whole: $name", ({ records }) => {
    const whole = stripAnsi(new TerminalWriter().next(reduce(EMPTY, records).runs).text);
    for (const seed of [1, 2, 3]) expect(stripAnsi(written(randomChunks(records, seededRandom(seed))))).toBe(whole);
    expect(stripAnsi(written(joinDeltas(records).map((record) => [record])))).toBe(whole);
  });

  it("continues sequences across pieces", () => {
    const text = written(
      recordsOf([START, CALL, printed(`a${E}]0;ti`), printed(`tle\u0007b${E}[3`), printed("1mc")]).map((r) => [r]),
    );
    expect(text).toContain("b");
    expect(text).toContain(`${E}[31mc`);
    expect(stripAnsi(text)).toContain("abc");
  });

  it("keeps the colour across pieces", () => {
    const text = written(recordsOf([START, CALL, printed(`${E}[31ma`), printed("b")]).map((record) => [record]));
    expect(text).toContain(`${E}[31mab`);
  });

  it("continues where a long piece is split", () => {
    const long = "z".repeat(70_000);
    const text = written(
      recordsOf([START, CALL, printed(long), printed(`${long}${E}[3`), printed("1mend")]).map((r) => [r]),
    );
    expect(stripAnsi(text)).toBe(`— turn 2 · Compare —\n❯ python print(1)\n${long}${long}end`);
  });

  it("is empty when nothing was printed", () => {
    const writer = new TerminalWriter();
    const before = reduce(EMPTY, recordsOf([START, CALL]));
    expect(writer.next(before.runs).text).not.toBe("");
    const after = reduce(before, recordsOf([{ kind: "text_delta", message_id: "m", text: "hm" }], "run_0", 2));
    expect(writer.next(after.runs)).toEqual({ startOver: false, text: "" });
  });

  function written(chunks: readonly (readonly LogRecord[])[]): string {
    const writer = new TerminalWriter();
    let view = EMPTY;
    let text = "";
    for (const chunk of chunks) {
      view = reduce(view, chunk);
      const next = writer.next(view.runs);
      expect(next.startOver).toBe(false);
      text += next.text;
    }
    return text;
  }
});

describe("starting over", () => {
  const one = runsOf(CALL, printed("1\n"));
  const other = reduce(EMPTY, recordsOf([START, CALL, printed("2\n")], "run_9")).runs;

  it("happens for another session", () => {
    const writer = new TerminalWriter();
    writer.next(one);
    const { startOver, text } = writer.next(other);
    expect(startOver).toBe(true);
    expect(text).toBe(new TerminalWriter().next(other).text);
  });

  it("happens when older runs are inserted", () => {
    const writer = new TerminalWriter();
    writer.next(one);
    expect(writer.next([...other, ...one]).startOver).toBe(true);
    expect(writer.next([...other, ...one])).toEqual({ startOver: false, text: "" });
  });

  it("happens when the history is shorter", () => {
    const writer = new TerminalWriter();
    writer.next(one);
    expect(writer.next([])).toEqual({ startOver: true, text: "" });
    writer.next(one);
    expect(writer.next(runsOf(CALL, printed("1"))).startOver).toBe(true);
  });

  it("does not happen when a run is added", () => {
    const writer = new TerminalWriter();
    writer.next(one);
    const { startOver, text } = writer.next([...one, ...other]);
    expect(startOver).toBe(false);
    expect(stripAnsi(text)).toMatch(/^\n— turn 2/);
  });
});

it("plainEnd returns the end of a run only", () => {
  const runs = runsOf(CALL, printed("long\n".repeat(1000)), { kind: "tool_finished", call_id: "c", result: "end" });
  const text = runs[0] ? plainEnd(runs[0], 13) : "";
  expect(text.endsWith("long\nlong\nend")).toBe(true);
  expect(text.length).toBeLessThan(100);
});
