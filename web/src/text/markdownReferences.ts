/**
 * Resolves references of a Markdown block to other parts of the text: `[label]` links, footnotes, and citations `[1]`.
 *
 * The definitions are appended to the block's text, so that blocks can be parsed separately. Pure.
 */

import type { Block } from "./markdownBlocks";

const DEFINITION = /^ {0,3}\[(?!\^)((?:\\.|[^[\]\\\n]){1,300})\]:[ \t]*\S/;
const LABEL = /\[((?:\\.|[^[\]\\\n]){1,300})\]/g;
// Matches citations. Skips inline code, and `[words][1]`, which is a link.
const CITATIONS =
  /(?<ticks>(?<!`)`+(?!`))[\s\S]{0,2000}?(?<!`)\k<ticks>(?!`)|(?<![\]\\!])(?<cited>(?:\[\d{1,3}\])+)(?![(:[])/g;

const normal = (label: string) => label.trim().replace(/\s+/g, " ").toLowerCase();

function labelsOf(block: Block): readonly string[] {
  return [...new Set([...block.text.matchAll(LABEL)].map((match) => normal(match[1] ?? "")))];
}

export interface Footnote {
  readonly number: number;
  readonly text: string;
}

export interface References {
  /** The definition line to append to a block, by label. */
  readonly lines: ReadonlyMap<string, string>;
  readonly notes: readonly Footnote[];
}

const defines = (block: Block) => block.kind === "footnote" || (block.kind === "prose" && DEFINITION.test(block.text));

/**
 * Collects the definitions of links and footnotes. Footnotes are numbered in order of definition, so a number never
 * changes while the text grows.
 */
function collect(defining: readonly Block[]): References {
  const lines = new Map<string, string>();
  const notes: Footnote[] = [];
  for (const block of defining) {
    if (block.kind === "footnote") {
      const label = /^\[\^[^\]]+\]:/.exec(block.text)?.[0] ?? "";
      const text = block.text.slice(label.length).replace(/^(?: {4}|\t)/gm, "");
      notes.push({ number: notes.length + 1, text: text.trim() });
      const key = normal(label.slice(1, -2));
      if (!lines.has(key)) lines.set(key, `${label} ${notes.length}`);
      continue;
    }
    for (const line of block.text.split("\n")) {
      const label = DEFINITION.exec(line)?.[1];
      if (label === undefined) break;
      if (!lines.has(normal(label))) lines.set(normal(label), line);
    }
  }
  return { lines, notes };
}

/** Collects the references of a growing text. `lines` stays the same map until a definition changes. */
export class ReferenceCollector {
  private defining: readonly Block[] = [];
  private references: References = collect([]);

  of(blocks: readonly Block[]): References {
    const defining = blocks.filter(defines);
    const isSame =
      defining.length === this.defining.length && defining.every((block, at) => block === this.defining[at]);
    if (!isSame) {
      const { lines, notes } = collect(defining);
      const before = this.references.lines;
      const isKnown = lines.size === before.size && [...lines].every(([label, line]) => before.get(label) === line);
      this.defining = defining;
      // The text of a footnote may grow without a change of its definition line.
      this.references = { lines: isKnown ? before : lines, notes };
    }
    return this.references;
  }
}

/** Returns the text of a block, followed by the definitions to which the block refers. */
export function withReferences(block: Block, lines: References["lines"]): string {
  if (lines.size === 0 || block.kind !== "prose") return block.text;
  const used = labelsOf(block).flatMap((label) => lines.get(label) ?? []);
  return used.length === 0 ? block.text : `${block.text}\n\n${used.join("\n")}`;
}

/** Turns each citation `[n]` into a link to the n-th source. A source without a safe URL is null and not linked. */
export function withCitations(text: string, sources: readonly (string | null)[]): string {
  if (sources.length === 0 || !text.includes("[")) return text;
  const linked = (mark: string, number: string) => {
    const source = sources[Number(number) - 1];
    return source ? `[&#91;${number}&#93;](<${source.replace(/[<>]/g, encodeURIComponent)}>)` : mark;
  };
  return text.replace(CITATIONS, (match, ...rest) => {
    const { cited } = rest.at(-1) as Record<string, string | undefined>;
    return cited === undefined ? match : cited.replace(/\[(\d+)\]/g, linked);
  });
}
