import { memo, useEffect, useMemo, useState } from "react";
import type { HighlightedSpan, IncrementalParser } from "./highlighting";
import { escapeInvisible } from "./invisibleCharacters";
import { languageName, loadLanguage } from "./languages";
import "./text.css";

/** Longer code is not highlighted. */
const LIMIT = 100_000;

type Colour = (code: string) => readonly HighlightedSpan[];

const ready = new Map<string, () => Colour>();

/** A function that highlights growing code; null if the language is not known. */
async function load(name: string): Promise<(() => Colour) | null> {
  const [support, { IncrementalParser, highlightSpans }] = await Promise.all([
    loadLanguage(name),
    import("./highlighting"),
  ]);
  if (!support) return null;
  const make = () => {
    const growing: IncrementalParser = new IncrementalParser();
    return (code: string) => highlightSpans(code, growing.parse(support.language.parser, code));
  };
  ready.set(name, make);
  return make;
}

function useColour(language: string): Colour | null {
  const name = languageName(language);
  const [colour, setColour] = useState<{ name: string; of: Colour } | null>(() => {
    const make = name === null ? undefined : ready.get(name);
    return name !== null && make ? { name, of: make() } : null;
  });
  useEffect(() => {
    if (name === null || colour?.name === name) return;
    let wanted = true;
    load(name).then(
      (make) => wanted && make && setColour({ name, of: make() }),
      () => {},
    );
    return () => {
      wanted = false;
    };
  }, [name, colour]);
  return colour?.name === name ? colour.of : null;
}

/** Highlighted code. Its text does not change when the language arrives. */
export const HighlightedCode = memo(function HighlightedCode({ code, language }: { code: string; language: string }) {
  const shown = useMemo(() => escapeInvisible(code), [code]);
  const colour = useColour(shown.length > LIMIT ? "" : language);
  const pieces = useMemo(() => colour?.(shown) ?? [{ text: shown, look: "" }], [colour, shown]);
  return (
    <code className="text-highlighted">
      {pieces.map((piece, index) =>
        piece.look ? (
          // biome-ignore lint/suspicious/noArrayIndexKey: pieces have no other name, and only the last ones change
          <span key={index} className={`code-${piece.look}`}>
            {piece.text}
          </span>
        ) : (
          piece.text
        ),
      )}
    </code>
  );
});
