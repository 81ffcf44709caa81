import { memo, useEffect, useMemo, useState } from "react";
import type { HighlightedSpan, IncrementalParser } from "./highlighting";
import { escapeInvisible } from "./invisibleCharacters";
import { languageName, loadLanguage } from "./languages";
import "./text.css";

/** Length above which code is not highlighted. */
const LIMIT = 100_000;

type Highlight = (code: string) => readonly HighlightedSpan[];

const factories = new Map<string, () => Highlight>();

/** Loads a language. Returns a function that makes a highlighter for growing code; null if the language is unknown. */
async function load(name: string): Promise<(() => Highlight) | null> {
  const [support, { IncrementalParser, highlightSpans }] = await Promise.all([
    loadLanguage(name),
    import("./highlighting"),
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

/** Highlighted code. It is plain until its language is loaded. */
export const HighlightedCode = memo(function HighlightedCode({ code, language }: { code: string; language: string }) {
  const shown = useMemo(() => escapeInvisible(code), [code]);
  const highlight = useHighlight(shown.length > LIMIT ? "" : language);
  const pieces = useMemo(() => highlight?.(shown) ?? [{ text: shown, style: "" }], [highlight, shown]);
  return (
    <code className="text-highlighted">
      {pieces.map((piece, index) =>
        piece.style ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other name, and only the last ones change
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
