import { expect, it } from "vitest";
import { reduce } from "../log/reduce";
import { EMPTY, type ToolItem } from "../log/viewModel";
import { recordsOf } from "../testing/goldenTranscripts";
import type { AnyEvent } from "../wire/events";
import { MAX_OUTPUT, MAX_RESULT, visibleOutput } from "./CodeOutput";

function call(...events: AnyEvent[]): ToolItem {
  const start: AnyEvent = { kind: "tool_started", call_id: "c", name: "python", args: {} };
  const item = reduce(EMPTY, recordsOf([start, ...events])).runs[0]?.items[0];
  if (item?.kind !== "tool") throw new Error("no call");
  return item;
}

const out = (text: string, stream: "stdout" | "stderr" = "stdout"): AnyEvent => ({
  kind: "tool_output_delta",
  call_id: "c",
  text,
  stream,
});

it("short output is shown completely", () => {
  const item = call(out("a"), out("b", "stderr"));
  expect(visibleOutput(item)).toEqual({ pieces: item.output, omittedBefore: 0, result: "", omittedAfter: 0 });
});

it("the end of long output is shown, across streams", () => {
  const { pieces, omittedBefore } = visibleOutput(
    call(out("first"), out("x".repeat(MAX_OUTPUT - 2), "stderr"), out("end")),
  );
  expect(omittedBefore).toBe(6);
  expect(pieces.map((piece) => piece.text.length)).toEqual([MAX_OUTPUT - 3, 3]);
});

it("the beginning of a long result is shown", () => {
  const result = "y".repeat(MAX_RESULT + 5);
  const shown = visibleOutput(call({ kind: "tool_finished", call_id: "c", result }));
  expect([shown.result.length, shown.omittedAfter]).toEqual([MAX_RESULT, 5]);
});

it("the omitted part of a result that only the server has is not counted", () => {
  const cut = { truncated: true, size: 50_000, result_url: "/whole" };
  expect(visibleOutput(call({ kind: "tool_finished", call_id: "c", result: "begin", ...cut })).omittedAfter).toBeNull();
});
