/**
 * Splits Markdown into blocks that are parsed separately, so that for a new token only the last block is parsed.
 *
 * A block ends at a blank line, unless an indented line or a list item continues it. Joining
 * two blocks would still be correct, splitting one would not. Fenced code and footnotes are separate blocks.
 */

export interface Block {
  /** Offset of the block in the text. It identifies the block while the text grows. */
  readonly start: number;
  readonly kind: "prose" | "fence" | "footnote";
  readonly text: string;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})([^\n]*)$/;
const FOOTNOTE = /^\[\^[^\]\s]{1,100}\]:/;
const LIST = /^ {0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)/;
const BLANK = /^[ \t]*$/;
const INDENTED = /^[ \t]/;

/** The fence that a line opens, e.g. three backticks; null if none. Further backticks make it inline code. */
function openedFence(line: string): string | null {
  const match = FENCE.exec(line);
  const marks = match?.[1];
  if (!marks || (marks.startsWith("`") && match[2]?.includes("`"))) return null;
  return marks;
}

function closesFence(line: string, fence: string): boolean {
  const match = FENCE.exec(line);
  const marks = match?.[1];
  return marks?.[0] === fence[0] && (marks?.length ?? 0) >= fence.length && BLANK.test(match?.[2] ?? "");
}

/** The blocks of the text from the offset `from`, at which a block must start. */
function splitBlocks(text: string, from: number): Block[] {
  const blocks: Block[] = [];
  let start = from;
  let kind: Block["kind"] = "prose";
  let fence: string | null = null;
  /** The open fence inside a list item or a footnote, in which blank lines do not end the block. */
  let inner: string | null = null;
  let isList = false;
  let afterBlank = false;
  let isEmpty = true;
  const end = (at: number) => {
    if (!isEmpty) blocks.push({ start, kind, text: text.slice(start, at) });
    start = at;
    kind = "prose";
    isList = false;
    isEmpty = true;
    inner = null;
  };
  for (let at = from; at < text.length; ) {
    const newline = text.indexOf("\n", at);
    const next = newline < 0 ? text.length : newline + 1;
    const line = text.slice(at, newline < 0 ? next : newline).replace(/\r$/, "");
    const isBlank = BLANK.test(line);
    if (fence !== null) {
      if (closesFence(line, fence)) {
        fence = null;
        end(next);
      }
    } else if (inner !== null && (isBlank || INDENTED.test(line))) {
      if (closesFence(line.trimStart(), inner)) inner = null;
    } else if (!isBlank) {
      inner = null;
      const isNested = INDENTED.test(line) && (isList || kind === "footnote");
      const marks = isNested ? null : openedFence(line);
      const isNote = FOOTNOTE.test(line);
      const continues = INDENTED.test(line) || (isList && LIST.test(line));
      if (marks !== null || isNote || (afterBlank && !continues)) end(at);
      if (marks !== null) {
        fence = marks;
        kind = "fence";
      } else if (isNote) {
        kind = "footnote";
      } else if (isEmpty) {
        isList = LIST.test(line);
      }
      isEmpty = false;
      if (marks === null && (isList || kind === "footnote")) inner = openedFence(line.replace(LIST, "").trimStart());
    }
    afterBlank = isBlank;
    at = next;
  }
  end(text.length);
  return blocks;
}

export function parseBlocks(text: string): readonly Block[] {
  return splitBlocks(text, 0);
}

/** Splits a growing text. Finished blocks are not split again and stay the same objects. */
export class IncrementalBlocks {
  private text = "";
  private blocks: readonly Block[] = [];

  of(text: string): readonly Block[] {
    if (text === this.text) return this.blocks;
    // The last two blocks are split again, because the growing last line may move the boundary between them.
    const stableCount = text.startsWith(this.text) ? Math.max(0, this.blocks.length - 2) : 0;
    const kept = this.blocks.slice(0, stableCount);
    const from = stableCount > 0 ? (this.blocks[stableCount]?.start ?? 0) : 0;
    const before = new Map(this.blocks.slice(stableCount).map((block) => [block.start, block]));
    const fresh = splitBlocks(text, from).map((block) => {
      const old = before.get(block.start);
      return old?.kind === block.kind && old.text === block.text ? old : block;
    });
    this.text = text;
    this.blocks = [...kept, ...fresh];
    return this.blocks;
  }
}

interface Fence {
  readonly language: string;
  readonly code: string;
}

/** Returns the language and the code of a block of fenced code. */
export function parseFence(text: string): Fence {
  const lines = text.replace(/\r\n/g, "\n").split("\n");
  const first = FENCE.exec(lines[0] ?? "");
  const indent = /^ */.exec(lines[0] ?? "")?.[0].length ?? 0;
  const marks = first?.[1] ?? "```";
  let last = lines.length - 1;
  while (last > 0 && BLANK.test(lines[last] ?? "") && !closesFence(lines[last] ?? "", marks)) last -= 1;
  const isClosed = last > 0 && closesFence(lines[last] ?? "", marks);
  const inside = lines.slice(1, isClosed ? last : lines.length);
  if (!isClosed && inside.at(-1) === "") inside.pop();
  const code = inside.map((line) => line.replace(new RegExp(`^ {0,${indent}}`), "")).join("\n");
  return { language: (first?.[2] ?? "").trim().split(/\s/, 1)[0] ?? "", code };
}
