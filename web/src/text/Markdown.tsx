import { memo, useState } from "react";
import { Blocks } from "./blocks";
import { Passage, Prose } from "./MarkdownBlock";
import { Definitions, type Footnote } from "./references";
import "./text.css";

const NONE: readonly (string | null)[] = [];
/** Blocks that are looked at together: for a token, one of each passage and those of the last one. */
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
 * A text of the log as markdown. Nothing of it becomes HTML, and nothing of it is fetched.
 *
 * `streaming` says that its end is still being written; `sources` are what `[1]`, `[2]`… stand for.
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
  const [{ growing, definitions }] = useState(() => ({ growing: new Blocks(), definitions: new Definitions() }));
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
