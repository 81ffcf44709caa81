import { type RefObject, useCallback, useState } from "react";
import { formatExactDuration, formatTokens } from "../log/displayText";
import { escapeInvisible } from "../text/invisibleCharacters";
import { STATE_LABELS } from "../ui/StateIcon";
import type { TimelineRow } from "./layout";

interface TooltipPosition {
  readonly index: number;
  readonly left: number;
  /** Distance from the top of the chart in px; null if the tooltip is above its row and placed from the bottom. */
  readonly top: number | null;
  readonly bottom: number | null;
}

/** The tooltip with details of the row under the pointer or with the focus. Screen readers read the row itself. */
export function Tooltip({ row, place }: { row: TimelineRow; place: TooltipPosition }) {
  const waited = row.parts.filter((part) => part.kind === "wait").reduce((sum, part) => sum + part.end - part.begin, 0);
  const { left, top, bottom } = place;
  return (
    <div className="timeline-hint" aria-hidden="true" style={{ left, top: top ?? "auto", bottom: bottom ?? "auto" }}>
      <div className="timeline-hint-name">{escapeInvisible(row.label)}</div>
      {row.about && <div className="timeline-hint-about">{escapeInvisible(row.about)}</div>}
      <dl>
        <dt>State</dt>
        <dd>{STATE_LABELS[row.state]}</dd>
        <dt>Start</dt>
        <dd>{formatExactDuration(row.begin)}</dd>
        <dt>Duration</dt>
        <dd>{row.state === "unseen" ? "not known" : formatExactDuration(row.end - row.begin)}</dd>
        {waited > 0 && row.kind !== "approval" && (
          <>
            <dt>Waited for you</dt>
            <dd>{formatExactDuration(waited)}</dd>
          </>
        )}
        {row.tokens && (
          <>
            <dt>Tokens</dt>
            <dd>
              {formatTokens(row.tokens.input)} in, {formatTokens(row.tokens.output)} out
            </dd>
          </>
        )}
      </dl>
    </div>
  );
}

const WIDTH = 280;
const GAP = 4;

interface TooltipControl {
  readonly tooltip: TooltipPosition | null;
  readonly hide: () => void;
  /** Shows the tooltip at a row, beside the pointer or at a distance in px from the left of the chart. */
  readonly show: (row: HTMLElement, x: { pointer: number } | { chart: number }) => void;
}

/** Shows and hides the tooltip, below its row or above it where there is no room. */
export function useTooltip(chart: RefObject<HTMLElement | null>): TooltipControl {
  const [tooltip, setTooltip] = useState<TooltipPosition | null>(null);
  const hide = useCallback(() => setTooltip(null), []);
  const show = useCallback(
    (row: HTMLElement, x: { pointer: number } | { chart: number }) => {
      const frame = chart.current?.getBoundingClientRect();
      if (frame === undefined) return;
      const place = row.getBoundingClientRect();
      const wanted = "pointer" in x ? x.pointer - frame.left + 12 : x.chart;
      const isLow = place.bottom - frame.top > frame.height / 2;
      setTooltip({
        index: Number(row.dataset.row),
        left: Math.max(8, Math.min(wanted, frame.width - WIDTH - 8)),
        top: isLow ? null : place.bottom - frame.top + GAP,
        bottom: isLow ? frame.bottom - place.top + GAP : null,
      });
    },
    [chart],
  );
  return { tooltip, hide, show };
}
