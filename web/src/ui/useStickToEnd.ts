import { type RefObject, useCallback, useLayoutEffect, useRef } from "react";

const NEAR = 24;

/** While something runs and its end is looked at, keep the end in sight. Returns what to call when the user scrolled. */
export function useEndOf(scroller: RefObject<HTMLElement | null>, isRunning: boolean, shown: unknown): () => void {
  const isAt = useRef({ right: false, bottom: true });
  // biome-ignore lint/correctness/useExhaustiveDependencies: whatever is shown anew may have moved the end
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || !isRunning) return;
    if (isAt.current.right) element.scrollLeft = element.scrollWidth;
    if (isAt.current.bottom) element.scrollTop = element.scrollHeight;
  }, [scroller, isRunning, shown]);
  return useCallback(() => {
    const element = scroller.current;
    if (element === null) return;
    const { scrollLeft, scrollTop, scrollWidth, scrollHeight, clientWidth, clientHeight } = element;
    isAt.current = {
      right: scrollWidth > clientWidth && scrollLeft + clientWidth >= scrollWidth - NEAR,
      bottom: scrollTop + clientHeight >= scrollHeight - NEAR,
    };
  }, [scroller]);
}
