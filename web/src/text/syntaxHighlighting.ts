/** Highlights code with CodeMirror's parsers. This module is loaded together with the first language. */

import { type Parser, type Tree, TreeFragment } from "@lezer/common";
import { highlightCode, tagHighlighter, tags } from "@lezer/highlight";

export interface HighlightedSpan {
  readonly text: string;
  readonly style: string;
}

const HIGHLIGHTER = tagHighlighter([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self, tags.processingInstruction], class: "keyword" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp, tags.attributeValue, tags.inserted], class: "string" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.escape, tags.unit, tags.color], class: "number" },
  { tag: [tags.comment, tags.meta, tags.quote], class: "comment" },
  {
    tag: [
      tags.function(tags.variableName),
      tags.function(tags.propertyName),
      tags.definition(tags.propertyName),
      tags.standard(tags.variableName),
      tags.attributeName,
      tags.propertyName,
      tags.labelName,
      tags.link,
      tags.url,
    ],
    class: "name",
  },
  { tag: [tags.typeName, tags.className, tags.namespace, tags.tagName, tags.heading], class: "type" },
  { tag: tags.invalid, class: "" },
]);

interface Parsed {
  readonly parser: Parser;
  readonly code: string;
  readonly tree: Tree;
}

/** An incremental parser of one growing code text. */
export class IncrementalParser {
  private last: Parsed | null = null;

  parse(parser: Parser, code: string): Tree {
    const { last } = this;
    if (last?.code === code && last.parser === parser) return last.tree;
    const hasGrown = last !== null && last.parser === parser && code.startsWith(last.code);
    const old = hasGrown ? TreeFragment.addTree(last.tree) : [];
    const change = hasGrown
      ? [{ fromA: last.code.length, toA: last.code.length, fromB: last.code.length, toB: code.length }]
      : [];
    const tree = parser.parse(code, TreeFragment.applyChanges(old, change));
    this.last = { parser, code, tree };
    return tree;
  }
}

/** Splits a code text into highlighted spans. Joined, the spans are the code. */
export function highlightSpans(code: string, tree: Tree): readonly HighlightedSpan[] {
  const pieces: { text: string; style: string }[] = [];
  const add = (text: string, style: string) => {
    const last = pieces.at(-1);
    if (last && last.style === style) last.text += text;
    else pieces.push({ text, style });
  };
  highlightCode(code, tree, HIGHLIGHTER, add, () => add("\n", ""));
  return pieces;
}
