import { type RefObject, useCallback, useState } from "react";
import type { HintPlace } from "./Tooltip";

const WIDTH = 280;
const GAP = 4;

interface Hints {
  readonly hint: HintPlace | null;
  readonly hide: () => void;
  /** Show it at a row, beside the pointer or at `x` px from the left of the chart. */
  readonly show: (row: HTMLElement, x: { pointer: number } | { chart: number }) => void;
}

/** Where the hint stands: below its row, or above where there is no room. */
export function useHint(chart: RefObject<HTMLElement | null>): Hints {
  const [hint, setHint] = useState<HintPlace | null>(null);
  const hide = useCallback(() => setHint(null), []);
  const show = useCallback(
    (row: HTMLElement, x: { pointer: number } | { chart: number }) => {
      const frame = chart.current?.getBoundingClientRect();
      if (frame === undefined) return;
      const place = row.getBoundingClientRect();
      const wish = "pointer" in x ? x.pointer - frame.left + 12 : x.chart;
      const isLow = place.bottom - frame.top > frame.height / 2;
      setHint({
        index: Number(row.dataset.row),
        left: Math.max(8, Math.min(wish, frame.width - WIDTH - 8)),
        top: isLow ? null : place.bottom - frame.top + GAP,
        bottom: isLow ? frame.bottom - place.top + GAP : null,
      });
    },
    [chart],
  );
  return { hint, hide, show };
}
