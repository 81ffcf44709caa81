/** A read-only CodeMirror editor with the colours of the page's theme. */

import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { Compartment, EditorState, type Extension, RangeSetBuilder } from "@codemirror/state";
import { Decoration, EditorView, highlightSpecialChars, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { memo, useEffect, useRef } from "react";
import { loadLanguage } from "../text/programmingLanguages";
import { distanceToEnd } from "../ui/hooks";
import type { DiffLine } from "./diff";

const theme = EditorView.theme({
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

const highlightStyle = HighlightStyle.define([
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

const editorTheme = [theme, syntaxHighlighting(highlightStyle)];

interface Props {
  readonly text: string;
  readonly language: string;
  readonly label: string;
  /** The lines of a diff with their marks; null if the editor shows no diff. */
  readonly lines: readonly DiffLine[] | null;
}

/** Distance from the end, in px, within which the editor scrolls along with growing code. */
const NEAR_END_PX = 40;

interface Editor {
  readonly view: EditorView;
  readonly language: Compartment;
  readonly label: Compartment;
  readonly marks: Compartment;
  text: string;
  lines: readonly DiffLine[] | null;
}

/** Shows code or a diff in a read-only editor. While the code grows, only the new text is inserted. */
export const CodeEditor = memo(function CodeEditor({ text, language, label, lines }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor | null>(null);

  useEffect(() => {
    if (host.current === null) return;
    const made = newEditor(host.current);
    editor.current = made;
    return () => {
      made.view.destroy();
      editor.current = null;
    };
  }, []);

  useEffect(() => {
    if (editor.current) show(editor.current, text, lines);
  }, [text, lines]);

  useEffect(() => {
    const { current } = editor;
    const attributes = { "aria-label": label, "aria-readonly": "true", tabindex: "0" };
    current?.view.dispatch({ effects: current.label.reconfigure(EditorView.contentAttributes.of(attributes)) });
  }, [label]);

  useEffect(() => {
    let isWanted = true;
    void loadLanguage(language).then((support) => {
      const { current } = editor;
      if (isWanted) current?.view.dispatch({ effects: current.language.reconfigure(support ?? []) });
    });
    return () => {
      isWanted = false;
    };
  }, [language]);

  return <div className="code-editor" ref={host} />;
});

function newEditor(parent: HTMLElement): Editor {
  const compartments = { language: new Compartment(), label: new Compartment(), marks: new Compartment() };
  const view = new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        EditorState.readOnly.of(true),
        EditorView.editable.of(false),
        // Bidirectional overrides would make the code look different from the code that runs.
        highlightSpecialChars({ addSpecialChars: /[\u202a-\u202c\u2068]/g }),
        EditorView.lineWrapping,
        compartments.language.of([]),
        compartments.label.of([]),
        compartments.marks.of(lineGutter(null)),
        editorTheme,
      ],
    }),
  });
  return { view, ...compartments, text: "", lines: null };
}

function show(editor: Editor, text: string, lines: readonly DiffLine[] | null): void {
  const { view, marks, text: before } = editor;
  const { scrollDOM } = view;
  const isGrowing = before !== "" && text.startsWith(before);
  const isAtEnd = distanceToEnd(scrollDOM) < NEAR_END_PX;
  view.dispatch({
    changes: isGrowing
      ? { from: view.state.doc.length, insert: text.slice(before.length) }
      : { from: 0, to: view.state.doc.length, insert: text },
    effects: lines === editor.lines ? [] : marks.reconfigure(lineGutter(lines)),
  });
  editor.text = text;
  editor.lines = lines;
  if (!isGrowing) scrollDOM.scrollTop = 0;
  else if (isAtEnd && text !== before)
    view.requestMeasure({
      read: () => scrollDOM.scrollHeight,
      write: (height) => {
        scrollDOM.scrollTop = height;
      },
    });
}

/** The gutter with line numbers; in a diff, those of the newer version and a mark for each changed line. */
function lineGutter(lines: readonly DiffLine[] | null): Extension {
  if (lines === null) return lineNumbers();
  const signs = { same: " ", added: "+", removed: "−" };
  return [
    lineNumbers({
      formatNumber: (number) => {
        const line = lines[number - 1];
        return line ? `${line.number ?? ""} ${signs[line.mark]}` : "";
      },
    }),
    EditorView.decorations.of((view) => {
      const builder = new RangeSetBuilder<Decoration>();
      for (const [index, line] of lines.entries()) {
        if (line.mark === "same" || index >= view.state.doc.lines) continue;
        const { from } = view.state.doc.line(index + 1);
        builder.add(from, from, Decoration.line({ class: `code-${line.mark}` }));
      }
      return builder.finish();
    }),
  ];
}
