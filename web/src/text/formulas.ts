/**
 * Hides formulas from the Markdown parser, which would read `_`, `*` and `\` as markup.
 *
 * Each formula is encoded as a word of private-use characters before parsing, and restored in the element tree.
 */

import type { Element, ElementContent, Root, Text } from "hast";
import { SKIP, visit } from "unist-util-visit";

const OPEN = "\ue000";
const CLOSE = "\ue001";
const DIGITS = 0xe010;
const ENCODED = /\ue000([\ue010-\ue01f]+)\ue001/g;

// Matches inline code and escaped characters, which stay, and the four notations of formulas. Lengths are bounded, so
// that an unclosed delimiter does not cause a search to the end of the text.
const SCAN =
  /(?<ticks>(?<!`)`+(?!`))[\s\S]{0,2000}?(?<!`)\k<ticks>(?!`)|\$\$(?<block>(?:[^$]|\$(?!\$)){1,2000}?)\$\$|\\\[(?<bracket>[\s\S]{1,2000}?)\\\]|\\\((?<paren>[\s\S]{1,2000}?)\\\)|\\[\s\S]|(?<![\w$])\$(?<inline>[^\s$](?:[^$\n]{0,400}[^\s$\\])?)\$(?![\w$])/g;
const MAY_CONTAIN = /\$|\\[[(]/;

const SIGN = /[\\^_={}]/;
const WORDS = /[A-Za-z]{3,}/;

/** Whether the text between two `$` is a formula, and not e.g. prices or shell variables. */
function looksLikeFormula(tex: string): boolean {
  if (SIGN.test(tex)) return true;
  return !WORDS.test(tex) && /[A-Za-z]/.test(tex) && !/^\d[\d.,]*\s+[A-Za-z]/.test(tex) && !/[,;:]\s/.test(tex);
}

function encode(source: string): string {
  let word = OPEN;
  for (let at = 0; at < source.length; at += 1) {
    for (const digit of source.charCodeAt(at).toString(16).padStart(4, "0")) {
      word += String.fromCharCode(DIGITS + Number.parseInt(digit, 16));
    }
  }
  return word + CLOSE;
}

function decode(digits: string): string {
  let source = "";
  for (let at = 0; at + 4 <= digits.length; at += 4) {
    const hex = [...digits.slice(at, at + 4)].map((digit) => (digit.charCodeAt(0) - DIGITS).toString(16)).join("");
    source += String.fromCharCode(Number.parseInt(hex, 16));
  }
  return source;
}

/** Encodes each formula in a text. The text must not contain fenced code. */
export function encodeFormulas(text: string): string {
  if (!MAY_CONTAIN.test(text)) return text;
  return text.replace(SCAN, (match, ...rest) => {
    const found = rest.at(-1) as Record<string, string | undefined>;
    const tex = found.block ?? found.bracket ?? found.paren;
    // A blank line ends a paragraph, so it cannot be inside a formula.
    if (tex !== undefined) return tex.trim() && !/\n[ \t]*\n/.test(tex) ? encode(match) : match;
    if (found.inline !== undefined) return looksLikeFormula(found.inline) ? encode(match) : match;
    return match;
  });
}

export interface Formula {
  readonly tex: string;
  readonly display: boolean;
}

/** Parses a formula with its delimiters. */
export function parseFormula(source: string): Formula {
  const width = source.startsWith("$") && !source.startsWith("$$") ? 1 : 2;
  return {
    tex: source.slice(width, -width).trim(),
    display: source.startsWith("$$") || source.startsWith("\\["),
  };
}

/** Plugin that restores formulas: in text as `<code data-formula>`, in code and URLs as their original text. */
export function rehypeFormulas() {
  return (tree: Root) => {
    visit(tree, (node, index, parent) => {
      if (node.type === "element") {
        for (const [name, value] of Object.entries(node.properties)) {
          if (typeof value === "string") node.properties[name] = restore(value);
        }
        return;
      }
      if (node.type !== "text" || !parent || index === undefined || !node.value.includes(OPEN)) return;
      if (parent.type === "element" && parent.tagName === "code") {
        node.value = restore(node.value);
        return;
      }
      const parts = splitFormulas(node.value);
      parent.children.splice(index, 1, ...parts);
      return [SKIP, index + parts.length];
    });
  };
}

/** Replaces encoded formulas in a string by their original text, also if they are percent-encoded in a URL. */
function restore(text: string): string {
  const plain = text.includes("%EE%80%80") ? text.replace(/(?:%EE%80%[89][0-9A-F])+/g, decodeURIComponent) : text;
  return plain.replace(ENCODED, (_, digits: string) => decode(digits));
}

function splitFormulas(text: string): ElementContent[] {
  const parts: (Element | Text)[] = [];
  let at = 0;
  for (const match of text.matchAll(ENCODED)) {
    if (match.index > at) parts.push({ type: "text", value: text.slice(at, match.index) });
    const source = decode(match[1] ?? "");
    parts.push({
      type: "element",
      tagName: "code",
      properties: { dataFormula: "" },
      children: [{ type: "text", value: source }],
    });
    at = match.index + match[0].length;
  }
  if (at < text.length) parts.push({ type: "text", value: text.slice(at) });
  return parts;
}
