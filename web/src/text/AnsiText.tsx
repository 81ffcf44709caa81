import { memo } from "react";
import { type Span, spans } from "./ansi";
import "./text.css";

/** Text of a program in its colours. */
export const AnsiText = memo(function AnsiText({ text, className = "" }: { text: string; className?: string }) {
  return (
    <span className={className}>
      <Spans of={spans(text)} />
    </span>
  );
});

export function Spans({ of }: { of: readonly Span[] }) {
  return of.map((span, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: the order is all that they are known by
    <span key={index} className={span.className || undefined}>
      {span.text}
    </span>
  ));
}
