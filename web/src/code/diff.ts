/** Computes the line diff of two texts. Pure. */

export interface DiffLine {
  readonly mark: "same" | "added" | "removed";
  readonly text: string;
  /** Line number in the newer version; null for a removed line. */
  readonly number: number | null;
}

/** Largest number of line pairs to compare. Above it, all lines between the common start and end count as replaced. */
const MAX_PAIRS = 4_000_000;

export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split("\n");
  const now = after.split("\n");
  let begin = 0;
  while (begin < old.length && begin < now.length && old[begin] === now[begin]) begin += 1;
  let end = 0;
  while (
    end < old.length - begin &&
    end < now.length - begin &&
    old[old.length - 1 - end] === now[now.length - 1 - end]
  )
    end += 1;
  const marks = [
    ...now.slice(0, begin).map((text) => ({ mark: "same" as const, text })),
    ...diffMiddle(old.slice(begin, old.length - end), now.slice(begin, now.length - end)),
    ...now.slice(now.length - end).map((text) => ({ mark: "same" as const, text })),
  ];
  let number = 0;
  return marks.map((line) => {
    if (line.mark !== "removed") number += 1;
    return { ...line, number: line.mark === "removed" ? null : number };
  });
}

type ChangedLine = Pick<DiffLine, "mark" | "text">;

/** Diffs the lines between the common start and end, by longest common subsequence. */
function diffMiddle(old: readonly string[], now: readonly string[]): ChangedLine[] {
  const removed = (text: string): ChangedLine => ({ mark: "removed", text });
  const added = (text: string): ChangedLine => ({ mark: "added", text });
  if (old.length * now.length > MAX_PAIRS) return [...old.map(removed), ...now.map(added)];
  const width = now.length + 1;
  const common = new Uint32Array((old.length + 1) * width);
  const at = (i: number, j: number) => common[i * width + j] ?? 0;
  for (let i = old.length - 1; i >= 0; i--)
    for (let j = now.length - 1; j >= 0; j--)
      common[i * width + j] = old[i] === now[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
  const lines: ChangedLine[] = [];
  let i = 0;
  let j = 0;
  while (i < old.length || j < now.length) {
    const [was, is] = [old[i], now[j]];
    if (was !== undefined && is !== undefined && was === is) {
      lines.push({ mark: "same", text: is });
      i += 1;
      j += 1;
    } else if (was !== undefined && (is === undefined || at(i + 1, j) >= at(i, j + 1))) {
      lines.push(removed(was));
      i += 1;
    } else if (is !== undefined) {
      lines.push(added(is));
      j += 1;
    }
  }
  return lines;
}
