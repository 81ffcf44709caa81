import { memo, useMemo, useState } from "react";
import { Button } from "../ui/Button";
import { type AnsiSpan, ansiSpans, ansiTail } from "./ansi";
import "./text.css";

/** Shows text with its ANSI styles, such as colours. */
export const AnsiText = memo(function AnsiText({ text, className = "" }: { text: string; className?: string }) {
  return (
    <span className={className}>
      <Spans of={ansiSpans(text)} />
    </span>
  );
});

function Spans({ of }: { of: readonly AnsiSpan[] }) {
  return of.map((span, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies a span
    <span key={index} className={span.className || undefined}>
      {span.text}
    </span>
  ));
}

const PREVIEW_LENGTH = 1_200;
const PART_LENGTH = 20_000;

interface ToolOutputProps {
  readonly text: string;
  /** Whether to show only a short end of the output. */
  readonly isPreview: boolean;
  /** Whether the beginning of the output is missing in `text`. */
  readonly isTruncated: boolean;
}

/** Shows the end of a tool's output, with its ANSI styles. */
export const ToolOutput = memo(function ToolOutput({ text, isPreview, isTruncated }: ToolOutputProps) {
  const [parts, setParts] = useState(1);
  const length = isPreview ? PREVIEW_LENGTH : PART_LENGTH * parts;
  const shown = useMemo(() => ansiTail(text, length), [text, length]);
  return (
    <div className="text-value">
      {(shown.isTruncated || isTruncated) && (
        <p className="printed-earlier">
          … earlier output is hidden
          {!isPreview && shown.isTruncated && <Button onClick={() => setParts(parts * 2)}>Show more</Button>}
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0}>
        <Spans of={shown.spans} />
      </pre>
    </div>
  );
});
