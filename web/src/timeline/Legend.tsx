import { memo } from "react";
import type { Row } from "./layout";

interface Sign {
  readonly word: string;
  readonly look: string;
  readonly occurs: (row: Row) => boolean;
}

const isOff = (row: Row) => row.state === "stopped" || row.state === "rejected";
const waits = (row: Row) => row.parts.some((part) => part.kind === "wait");

const SIGNS: readonly Sign[] = [
  { word: "Agent", look: "timeline-bar-agent", occurs: (row) => row.kind === "agent" },
  { word: "Step", look: "timeline-bar-step", occurs: (row) => row.kind === "step" },
  { word: "Thinking", look: "timeline-bar-thought", occurs: (row) => row.kind === "thought" },
  { word: "Text", look: "timeline-bar-text", occurs: (row) => row.kind === "text" },
  { word: "Tool", look: "timeline-bar-tool", occurs: (row) => row.kind === "tool" },
  {
    word: "Writing arguments",
    look: "timeline-bar-tool timeline-part-write",
    occurs: (row) => row.parts.some((part) => part.kind === "write"),
  },
  { word: "Waiting for you", look: "timeline-bar-tool timeline-part-wait", occurs: waits },
  { word: "Failed", look: "timeline-bar-tool timeline-is-failed", occurs: (row) => row.state === "failed" },
  {
    word: "No result seen",
    look: "timeline-bar-tool timeline-is-unseen",
    occurs: (row) => row.state === "unseen",
  },
  { word: "Stopped", look: "timeline-bar-tool timeline-is-stopped", occurs: isOff },
];

/** What the bars mean, as far as they occur. */
export const Legend = memo(function Legend({ rows }: { rows: readonly Row[] }) {
  return (
    <ul className="timeline-legend" aria-label="Legend">
      {SIGNS.filter((sign) => rows.some(sign.occurs)).map((sign) => (
        <li key={sign.word}>
          <span className="timeline-swatch" aria-hidden="true">
            <span className={`timeline-bar ${sign.look}`} />
          </span>
          {sign.word}
        </li>
      ))}
    </ul>
  );
});
