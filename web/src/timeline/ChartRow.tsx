import { memo } from "react";
import { visible } from "../text/invisibleCharacters";
import { took } from "../ui/formatDuration";
import { STATE_WORDS, StateIcon } from "../ui/StateIcon";
import type { Row } from "./layout";

interface Props {
  readonly id: string;
  readonly row: Row;
  readonly index: number;
  readonly scale: number;
  readonly labels: number;
  readonly isActive: boolean;
  readonly isPicked: boolean;
}

const DEEPEST = 8;

/** One line of the chart: who, and when. Clicks and keys are heard by the chart. */
export const ChartRow = memo(function ChartRow({ id, row, index, scale, labels, isActive, isPicked }: Props) {
  const deep = Math.min(row.depth, DEEPEST);
  const end = row.end * scale;
  const isSeen = row.state !== "unseen";
  return (
    // biome-ignore lint/a11y/useFocusableInteractive: the chart has the focus and names its active row
    <div
      role="treeitem"
      aria-level={row.depth + 1}
      aria-selected={isPicked}
      id={id}
      data-row={index}
      data-active={isActive ? "" : undefined}
      className={`timeline-row timeline-row-${row.kind}`}
    >
      <div className="timeline-label" style={{ width: labels }}>
        {Array.from({ length: deep }, (_, level) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: lines of the indentation have no other name
          <span key={level} className="timeline-indent" aria-hidden="true" />
        ))}
        <StateIcon state={row.state} size={14} />
        <span className="timeline-name">{visible(row.label)}</span>
        {row.about && <span className="timeline-about">{visible(row.about)}</span>}
      </div>
      <div className="timeline-track">
        {row.parts.map((part) => (
          <span
            key={`${part.kind} ${part.begin}`}
            className={`timeline-bar timeline-bar-${row.kind} timeline-part-${part.kind} timeline-is-${row.state}`}
            data-open={row.isOpen && part.end === row.end ? "" : undefined}
            style={{ left: part.begin * scale, width: Math.max(2, (part.end - part.begin) * scale) }}
          />
        ))}
        <span className="timeline-took" style={{ left: Math.max(end, row.begin * scale + 2) }}>
          <span className="unseen">{`begins at ${took(row.begin)}, ${isSeen ? "took " : ""}`}</span>
          {isSeen ? took(row.end - row.begin) : STATE_WORDS.unseen}
        </span>
      </div>
    </div>
  );
});
