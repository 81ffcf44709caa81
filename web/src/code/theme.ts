/** How code looks in CodeMirror: the page's own colours, so that light and dark need nothing else. */

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const look = EditorView.theme({
  "&": { height: "100%", backgroundColor: "var(--back)", color: "var(--ink)", fontSize: "12.5px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { padding: "10px 0" },
  ".cm-content:focus-visible": { outline: "2px solid var(--accent)", outlineOffset: "-2px" },
  ".cm-line": { padding: "0 14px 0 8px" },
  ".cm-gutters": { backgroundColor: "var(--back)", color: "var(--ink-faint)", border: "0" },
  ".cm-lineNumbers .cm-gutterElement": { minWidth: "38px", padding: "0 6px 0 10px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft)",
  },
  ".cm-line.code-added": { backgroundColor: "color-mix(in srgb, var(--ok) 14%, transparent)" },
  ".cm-line.code-removed": { backgroundColor: "color-mix(in srgb, var(--bad) 12%, transparent)" },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier, tags.self], color: "var(--code-keyword)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp, tags.attributeValue], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.null, tags.atom, tags.escape], color: "var(--code-number)" },
  { tag: [tags.comment, tags.meta], color: "var(--code-comment)" },
  {
    tag: [
      tags.function(tags.variableName),
      tags.function(tags.propertyName),
      tags.definition(tags.function(tags.variableName)),
    ],
    color: "var(--code-name)",
  },
  { tag: [tags.className, tags.typeName, tags.tagName, tags.attributeName, tags.namespace], color: "var(--code-type)" },
]);

export const codeLook = [look, syntaxHighlighting(colours)];
