import { memo } from "react";
import { spans } from "./ansi";

/** Text of a program in its colours. */
export const AnsiText = memo(function AnsiText({ text, className = "" }: { text: string; className?: string }) {
  return (
    <span className={className}>
      {spans(text).map((span, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the order is all that they are known by
        <span key={index} className={span.className || undefined}>
          {span.text}
        </span>
      ))}
    </span>
  );
});
