/**
 * Parses one block of Markdown into an element tree. Pure.
 *
 * The parser has no HTML syntax, so tags stay text. The tree is also checked against an allow-list of elements and
 * attributes, so that an update of a library cannot add any.
 */

import type { Element, ElementContent, Root } from "hast";
import type { FootnoteReference } from "mdast";
import remarkGfm from "remark-gfm";
import remarkParse from "remark-parse";
import remarkRehype from "remark-rehype";
import { type Processor, unified } from "unified";
import { SKIP, visit } from "unist-util-visit";
import { encodeFormulas, rehypeFormulas } from "./formulas";
import { escapeBidi } from "./invisibleCharacters";
import { slugOf } from "./safeUrls";

const ATTRIBUTES: Record<string, readonly string[]> = {
  a: ["href", "title", "dataNote"],
  blockquote: [],
  br: [],
  code: ["className", "dataFormula"],
  del: [],
  em: [],
  h1: ["dataAnchor"],
  h2: ["dataAnchor"],
  h3: ["dataAnchor"],
  h4: ["dataAnchor"],
  h5: ["dataAnchor"],
  h6: ["dataAnchor"],
  hr: [],
  img: ["src", "alt", "title"],
  input: ["checked"],
  li: ["className"],
  ol: ["start"],
  p: [],
  pre: [],
  strong: [],
  sup: [],
  table: [],
  tbody: [],
  td: ["align"],
  th: ["align"],
  thead: [],
  tr: [],
  ul: ["className"],
};

function withoutHtml(this: Processor) {
  const data = this.data() as { micromarkExtensions?: unknown[] };
  data.micromarkExtensions = [...(data.micromarkExtensions ?? []), { disable: { null: ["htmlFlow", "htmlText"] } }];
}

function textIn(node: Element | ElementContent): string {
  if (node.type === "text") return node.value;
  return node.type === "element" ? node.children.map(textIn).join("") : "";
}

function onlyKnown() {
  return (tree: Root) => {
    visit(tree, (node, index, parent) => {
      if (node.type === "root" || node.type === "text" || !parent || index === undefined) return;
      const allowed = node.type === "element" && Object.hasOwn(ATTRIBUTES, node.tagName) && ATTRIBUTES[node.tagName];
      if (node.type !== "element" || !allowed) {
        parent.children.splice(index, 1, ...(node.type === "element" ? node.children : []));
        return [SKIP, index];
      }
      if (/^h[1-6]$/.test(node.tagName)) node.properties.dataAnchor = slugOf(textIn(node));
      node.properties = Object.fromEntries(Object.entries(node.properties).filter(([name]) => allowed.includes(name)));
    });
  };
}

/** Returns the element of a footnote mark, a link to the footnote with this number. */
function mark(node: FootnoteReference, number: string): Element {
  const link: Element = {
    type: "element",
    tagName: "a",
    properties: { href: `#note-${number || node.identifier}`, dataNote: number },
    children: [{ type: "text", value: number || node.identifier }],
  };
  return { type: "element", tagName: "sup", properties: {}, children: [link] };
}

const processor = unified()
  .use(remarkParse)
  .use(withoutHtml)
  .use(remarkGfm, { singleTilde: false })
  .use(remarkRehype, {
    handlers: {
      footnoteReference(state, node: FootnoteReference) {
        const first = state.footnoteById.get(node.identifier.toUpperCase())?.children[0];
        const text = first?.type === "paragraph" ? first.children[0] : undefined;
        return mark(node, text?.type === "text" ? text.value : "");
      },
    },
  })
  .use(rehypeFormulas)
  .use(onlyKnown)
  .freeze();

/** Length above which a block is not parsed, because parsing would take too long. */
export const PROSE_LIMIT = 100_000;
const MAX_CACHED_TREES = 800;
const MAX_CACHED_LENGTH = 4000;
const treeCache = new Map<string, Root>();

/**
 * Parses a block and returns its element tree. Trees of short finished blocks are cached, because rows unmount and
 * mount while the user scrolls.
 */
export function parseMarkdown(text: string, isGrowing = false): Root {
  const before = treeCache.get(text);
  if (before) return before;
  const source = encodeFormulas(escapeBidi(text));
  const tree = processor.runSync(processor.parse(source));
  if (!isGrowing && text.length <= MAX_CACHED_LENGTH) {
    const oldest = treeCache.size >= MAX_CACHED_TREES ? treeCache.keys().next().value : undefined;
    if (oldest !== undefined) treeCache.delete(oldest);
    treeCache.set(text, tree);
  }
  return tree;
}
