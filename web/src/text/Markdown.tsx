import { toJsxRuntime } from "hast-util-to-jsx-runtime";
import { memo, useMemo, useState } from "react";
import { Fragment, jsx, jsxs } from "react/jsx-runtime";
import remend from "remend";
import { CodeBlock } from "./CodeBlock";
import { escapeInvisible } from "./invisibleCharacters";
import { type Block, IncrementalBlocks, parseFence } from "./markdownBlocks";
import { ELEMENTS } from "./markdownElements";
import {
  type Footnote,
  ReferenceCollector,
  type References,
  withCitations,
  withReferences,
} from "./markdownReferences";
import { PROSE_LIMIT, parseMarkdown } from "./markdownTree";
import "./text.css";

// Options for unfinished Markdown: closes open emphasis, and leaves images, tags and formulas unchanged.
const UNFINISHED = { linkMode: "text-only", images: false, htmlTags: false, katex: false } as const;
const ELEMENTS_OF_REACT = { Fragment, jsx, jsxs, components: ELEMENTS, passNode: true };

interface ProseProps {
  readonly text: string;
  readonly isGrowing?: boolean;
}

/** Shows one block of Markdown, which is parsed only when its text changes. */
export const Prose = memo(
  function Prose({ text, isGrowing = false }: ProseProps) {
    if (text.length > PROSE_LIMIT) return <pre className="text-plain">{escapeInvisible(text)}</pre>;
    return toJsxRuntime(parseMarkdown(text, isGrowing), ELEMENTS_OF_REACT);
  },
  (one, other) => one.text === other.text,
);

const Fence = memo(function Fence({ text }: { text: string }) {
  const { code, language } = useMemo(() => parseFence(text), [text]);
  return <CodeBlock code={code} language={language} />;
});

interface PassageProps {
  readonly blocks: readonly Block[];
  readonly lines: References["lines"];
  readonly sources: readonly (string | null)[];
  /** Whether the last block is still growing. */
  readonly open: boolean;
}

function isSame(one: PassageProps, other: PassageProps): boolean {
  return (
    one.open === other.open &&
    one.lines === other.lines &&
    one.sources === other.sources &&
    one.blocks.length === other.blocks.length &&
    one.blocks.every((block, index) => block === other.blocks[index])
  );
}

/** A group of consecutive blocks that is memoized as a whole, so that a new token costs little in a long text. */
const Passage = memo(function Passage({ blocks, lines, sources, open }: PassageProps) {
  const last = open ? blocks.at(-1) : undefined;
  return blocks.map((block) => {
    if (block.kind === "footnote") return null;
    if (block.kind === "fence") return <Fence key={block.start} text={block.text} />;
    const text = withCitations(withReferences(block, lines), sources);
    const isOpen = block === last && text.length <= PROSE_LIMIT;
    return <Prose key={block.start} text={isOpen ? remend(text, UNFINISHED) : text} isGrowing={isOpen} />;
  });
}, isSame);

const NONE: readonly (string | null)[] = [];
/** Number of blocks in a passage. */
const PASSAGE = 16;

const Notes = memo(function Notes({ notes }: { notes: readonly Footnote[] }) {
  return (
    <ol className="text-notes" aria-label="Footnotes">
      {notes.map((note) => (
        <li key={note.number} data-anchor={`note-${note.number}`} tabIndex={-1}>
          <Prose text={note.text} />
        </li>
      ))}
    </ol>
  );
});

/**
 * Shows untrusted Markdown, such as an answer, as React elements. It renders no HTML and fetches nothing.
 *
 * `streaming` means that the end is still being written; `sources` are the targets of `[1]`, `[2]`…
 */
export const Markdown = memo(function Markdown({
  text,
  streaming = false,
  sources = NONE,
}: {
  text: string;
  streaming?: boolean;
  sources?: readonly (string | null)[];
}) {
  const [{ growing, definitions }] = useState(() => ({
    growing: new IncrementalBlocks(),
    definitions: new ReferenceCollector(),
  }));
  const blocks = growing.of(text);
  const { lines, notes } = definitions.of(blocks);
  const passages = Array.from({ length: Math.ceil(blocks.length / PASSAGE) }, (_, index) => index * PASSAGE);
  return (
    <div className="text">
      {passages.map((from) => (
        <Passage
          key={from}
          blocks={blocks.slice(from, from + PASSAGE)}
          lines={lines}
          sources={sources}
          open={streaming && from + PASSAGE >= blocks.length}
        />
      ))}
      {notes.length > 0 && <Notes notes={notes} />}
    </div>
  );
});
