/** The zoom of the timeline: computes its scale in px per ms, and lets the user change it. */

import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** Space after the last bar for its duration, in px. */
export const END_ROOM = 76;
const MAX_TRACK = 4_000_000;
const MAX_SCALE = 20;

/** The scale at which the complete run is visible. */
export function fitScale(width: number, span: number): number {
  return Math.max(40, width - END_ROOM) / Math.max(1, span);
}

/** Restricts a requested scale to its limits. Returns null if at this scale the complete run is visible. */
export function clampScale(requestedScale: number, width: number, span: number): number | null {
  const fit = fitScale(width, span);
  const most = Math.max(fit, Math.min(MAX_SCALE, MAX_TRACK / Math.max(1, span)));
  const scale = Math.min(requestedScale, most);
  return scale <= fit * 1.001 ? null : scale;
}

export function labelWidth(width: number): number {
  return Math.round(Math.min(300, Math.max(128, width * 0.38)));
}

interface Zoom {
  readonly scale: number;
  readonly isFit: boolean;
  zoomBy(factor: number): void;
  fitAll(): void;
}

/** The scale of the chart. It fits the complete run until the user zooms with buttons or with Ctrl and the wheel. */
export function useZoom(scroller: RefObject<HTMLElement | null>, labels: number, width: number, span: number): Zoom {
  const [requestedScale, setRequestedScale] = useState<number | null>(null);
  const scaleOverride = requestedScale === null ? null : clampScale(requestedScale, width, span);
  const scale = scaleOverride ?? fitScale(width, span);
  /** A time that stays at its horizontal position `x` while the scale changes. */
  const anchor = useRef<{ time: number; x: number } | null>(null);
  const latest = useRef({ scale, width, span });
  useLayoutEffect(() => {
    latest.current = { scale, width, span };
    const element = scroller.current;
    if (element === null || anchor.current === null) return;
    element.scrollLeft = anchor.current.time * scale - anchor.current.x;
    anchor.current = null;
  }, [scale, width, span, scroller]);

  const zoom = useCallback(
    (factor: number, at?: number) => {
      const element = scroller.current;
      const now = latest.current;
      const x = at ?? now.width / 2;
      if (element !== null) anchor.current = { time: (element.scrollLeft + x) / now.scale, x };
      setRequestedScale(clampScale(now.scale * factor, now.width, now.span));
    },
    [scroller],
  );

  useEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const onWheel = (event: WheelEvent) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      const x = event.clientX - element.getBoundingClientRect().left - labels;
      zoom(Math.exp(-event.deltaY * (event.deltaMode === 0 ? 0.004 : 0.1)), Math.max(0, x));
    };
    // React's wheel listeners are passive, so they cannot keep the browser from zooming the page.
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [scroller, labels, zoom]);

  const zoomBy = useCallback((factor: number) => zoom(factor), [zoom]);
  const fitAll = useCallback(() => setRequestedScale(null), []);
  return { scale, isFit: scaleOverride === null, zoomBy, fitAll };
}
