/**
 * Formulas are taken out of a text before markdown is read, and put back into its tree: TeX is full of `_`, `*` and `\`,
 * which would be taken for markup. In between, each is a word of characters that no text has.
 */

import type { Element, ElementContent, Root, Text } from "hast";
import { SKIP, visit } from "unist-util-visit";

const OPEN = "\ue000";
const CLOSE = "\ue001";
const DIGITS = 0xe010;
const WORD = /\ue000([\ue010-\ue01f]+)\ue001/g;

// In order: code in backticks and escaped characters, which are left alone, and the four ways to write a formula. Lengths are
// bounded, so that a text full of beginnings without an end is not searched to its end for each of them.
const SCAN =
  /(?<ticks>(?<!`)`+(?!`))[\s\S]{0,2000}?(?<!`)\k<ticks>(?!`)|\$\$(?<block>(?:[^$]|\$(?!\$)){1,2000}?)\$\$|\\\[(?<bracket>[\s\S]{1,2000}?)\\\]|\\\((?<paren>[\s\S]{1,2000}?)\\\)|\\[\s\S]|(?<![\w$])\$(?<inline>[^\s$](?:[^$\n]{0,400}[^\s$\\])?)\$(?![\w$])/g;
const MIGHT = /\$|\\[[(]/;

const SIGN = /[\\^_={}]/;
const WORDS = /[A-Za-z]{3,}/;

/** `$x$` is a formula only if it looks like one: prices and names of shell variables are left alone. */
function isFormula(tex: string): boolean {
  if (SIGN.test(tex)) return true;
  return !WORDS.test(tex) && /[A-Za-z]/.test(tex) && !/^\d[\d.,]*\s+[A-Za-z]/.test(tex) && !/[,;:]\s/.test(tex);
}

function encoded(source: string): string {
  let word = OPEN;
  for (let at = 0; at < source.length; at += 1) {
    for (const digit of source.charCodeAt(at).toString(16).padStart(4, "0")) {
      word += String.fromCharCode(DIGITS + Number.parseInt(digit, 16));
    }
  }
  return word + CLOSE;
}

function decoded(digits: string): string {
  let source = "";
  for (let at = 0; at + 4 <= digits.length; at += 4) {
    const hex = [...digits.slice(at, at + 4)].map((digit) => (digit.charCodeAt(0) - DIGITS).toString(16)).join("");
    source += String.fromCharCode(Number.parseInt(hex, 16));
  }
  return source;
}

/** The text with a word in place of each formula. Code between fences must not be in it. */
export function encodeFormulas(text: string): string {
  if (!MIGHT.test(text)) return text;
  return text.replace(SCAN, (match, ...rest) => {
    const found = rest.at(-1) as Record<string, string | undefined>;
    const tex = found.block ?? found.bracket ?? found.paren;
    // A blank line ends a paragraph, and so it ends what looked like a formula.
    if (tex !== undefined) return tex.trim() && !/\n[ \t]*\n/.test(tex) ? encoded(match) : match;
    if (found.inline !== undefined) return isFormula(found.inline) ? encoded(match) : match;
    return match;
  });
}

export interface Formula {
  readonly tex: string;
  readonly display: boolean;
}

/** What stands between the marks of a formula. */
export function parseFormula(source: string): Formula {
  const width = source.startsWith("$") && !source.startsWith("$$") ? 1 : 2;
  return {
    tex: source.slice(width, -width).trim(),
    display: source.startsWith("$$") || source.startsWith("\\["),
  };
}

/** Puts formulas back: in running text as `<code data-formula>`, in code and in addresses as they were written. */
export function rehypeFormulas() {
  return (tree: Root) => {
    visit(tree, (node, index, parent) => {
      if (node.type === "element") {
        for (const [name, value] of Object.entries(node.properties)) {
          if (typeof value === "string") node.properties[name] = restored(value);
        }
        return;
      }
      if (node.type !== "text" || !parent || index === undefined || !node.value.includes(OPEN)) return;
      if (parent.type === "element" && parent.tagName === "code") {
        node.value = restored(node.value);
        return;
      }
      const parts = partsOf(node.value);
      parent.children.splice(index, 1, ...parts);
      return [SKIP, index + parts.length];
    });
  };
}

/** Formulas as they were written, also in an address, where they were escaped. */
function restored(text: string): string {
  const plain = text.includes("%EE%80%80") ? text.replace(/(?:%EE%80%[89][0-9A-F])+/g, decodeURIComponent) : text;
  return plain.replace(WORD, (_, digits: string) => decoded(digits));
}

function partsOf(text: string): ElementContent[] {
  const parts: (Element | Text)[] = [];
  let at = 0;
  for (const match of text.matchAll(WORD)) {
    if (match.index > at) parts.push({ type: "text", value: text.slice(at, match.index) });
    const source = decoded(match[1] ?? "");
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
