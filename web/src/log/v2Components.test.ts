import { describe, expect, it } from "vitest";
import { dialectTranscripts, messagesOf, type V2Message } from "../testing/goldenTranscripts";
import { codeOf } from "./codeArguments";
import { reduce } from "./reduce";
import table from "./v2Components.json";
import { EMPTY, type RunView, type TerminalPiece, type ToolItem } from "./viewModel";

const PANES: Record<string, string> = table.panes;

describe.each(dialectTranscripts())("$name", ({ name, records }) => {
  const messages = messagesOf(name);
  const run = reduce(EMPTY, records).runs[0];

  it("the server's messages are routed by the page's table", () => {
    for (const { metadata } of messages) {
      const isCode = metadata.message_type === "tool_invocation" && (metadata.code ?? metadata.streaming) !== undefined;
      expect(metadata.component).toBe(isCode ? table.code_pane : PANES[metadata.message_type]);
    }
  });

  it("the code of each call equals the last complete code that the server sends to the code pane", () => {
    const sent = messages.filter(
      ({ metadata: { component, code } }) => component === table.code_pane && code !== undefined,
    );
    expect(codes(run)).toEqual([...new Map(sent.map(({ metadata }) => [metadata.tool_id, metadata.code]))]);
  });

  it("the terminal equals the output and results that the server sends to it", () => {
    const sent = messages.filter(({ metadata }) => metadata.component === "terminal" && isNews(metadata));
    const shown = (run?.terminal ?? []).filter((piece) => piece.kind !== "call").map((piece) => written(run, piece));
    expect(shown).toEqual(joinedOutput(sent));
  });

  it("the line of a call precedes its output", () => {
    const begun = new Set<number>();
    for (const { item, kind } of run?.terminal ?? []) {
      expect(kind === "call").toBe(!begun.has(item));
      begun.add(item);
    }
  });
});

function codes(run: RunView | undefined): unknown[] {
  return (run?.codes ?? []).map((index) => [toolAt(run, index).callId, codeOf(toolAt(run, index))?.text]);
}

function toolAt(run: RunView | undefined, index: number): ToolItem {
  const item = run?.items[index];
  if (item?.kind !== "tool") throw new Error(`no call at ${index}`);
  return item;
}

/** Whether a message has new text: the final message repeats the deltas of the live output. */
function isNews({ message_type, is_delta }: V2Message["metadata"]): boolean {
  return message_type === "observation" || is_delta === true;
}

interface Written {
  readonly call: string | undefined;
  readonly type: string;
  readonly text: string;
}

function written(run: RunView | undefined, { item, kind, text }: TerminalPiece): Written {
  const tool = toolAt(run, item);
  const isResult = kind === "result" || kind === "error";
  // The terminal shows JSON on several lines, the server's message on one.
  const isValue = isResult && typeof tool.result !== "string";
  return {
    call: tool.callId,
    type: isResult ? "observation" : `execution_logs ${kind}`,
    text: isValue ? JSON.stringify(JSON.parse(text)) : text,
  };
}

function joinedOutput(messages: readonly V2Message[]): Written[] {
  const pieces: Written[] = [];
  for (const { content, metadata } of messages) {
    const stream = "stream" in metadata ? ` ${metadata.stream}` : "";
    const piece = { call: metadata.tool_id, type: `${metadata.message_type}${stream}`, text: content };
    const last = pieces[pieces.length - 1];
    if (stream && last?.call === piece.call && last?.type === piece.type)
      pieces[pieces.length - 1] = { ...piece, text: last.text + piece.text };
    else pieces.push(piece);
  }
  return pieces;
}
