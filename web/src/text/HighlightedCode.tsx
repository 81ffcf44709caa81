import { memo, useEffect, useMemo, useState } from "react";
import { escapeInvisible } from "./invisibleCharacters";
import { languageName, loadLanguage } from "./programmingLanguages";
import type { HighlightedSpan, IncrementalParser } from "./syntaxHighlighting";
import "./text.css";

/** Length in characters above which code is not highlighted. */
const MAX_HIGHLIGHTED_LENGTH = 100_000;

type Highlight = (code: string) => readonly HighlightedSpan[];

const factories = new Map<string, () => Highlight>();

/** Loads a language and returns a factory of highlighters for growing code; null if the language is unknown. */
async function load(name: string): Promise<(() => Highlight) | null> {
  const [support, { IncrementalParser, highlightSpans }] = await Promise.all([
    loadLanguage(name),
    import("./syntaxHighlighting"),
  ]);
  if (!support) return null;
  const make = () => {
    const growing: IncrementalParser = new IncrementalParser();
    return (code: string) => highlightSpans(code, growing.parse(support.language.parser, code));
  };
  factories.set(name, make);
  return make;
}

function useHighlight(language: string): Highlight | null {
  const name = languageName(language);
  const [highlight, setHighlight] = useState<{ name: string; of: Highlight } | null>(() => {
    const make = name === null ? undefined : factories.get(name);
    return name !== null && make ? { name, of: make() } : null;
  });
  useEffect(() => {
    if (name === null || highlight?.name === name) return;
    let isMounted = true;
    load(name).then(
      (make) => isMounted && make && setHighlight({ name, of: make() }),
      () => {},
    );
    return () => {
      isMounted = false;
    };
  }, [name, highlight]);
  return highlight?.name === name ? highlight.of : null;
}

/** Shows code with syntax highlighting, plain until the parser of its language is loaded. */
export const HighlightedCode = memo(function HighlightedCode({ code, language }: { code: string; language: string }) {
  const shown = useMemo(() => escapeInvisible(code), [code]);
  const highlight = useHighlight(shown.length > MAX_HIGHLIGHTED_LENGTH ? "" : language);
  const pieces = useMemo(() => highlight?.(shown) ?? [{ text: shown, style: "" }], [highlight, shown]);
  return (
    <code className="text-highlighted">
      {pieces.map((piece, index) =>
        piece.style ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies a piece, and only the last ones change
          <span key={index} className={`code-${piece.style}`}>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </code>
  );
});
