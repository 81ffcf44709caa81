import {
  type Context,
  type RefObject,
  useCallback,
  useContext,
  useLayoutEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";

/** Returns the current width of an element in px; `atFirst` until it is measured. */
export function useElementWidth(ref: RefObject<HTMLElement | null>, atFirst: number): number {
  const [width, setWidth] = useState(atFirst);
  useLayoutEffect(() => {
    const element = ref.current;
    if (element === null) return;
    const measure = () => setWidth(element.clientWidth || atFirst);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, [ref, atFirst]);
  return width;
}

/** Whether a media query matches, e.g. `(max-width: 899px)`. */
export function useMediaQuery(query: string): boolean {
  const watch = useCallback(
    (changed: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    [query],
  );
  return useSyncExternalStore(watch, () => matchMedia(query).matches);
}

/** Returns how far a scrolling element is from its end, in px. */
export function distanceToEnd({ scrollHeight, scrollTop, clientHeight }: Element): number {
  return scrollHeight - scrollTop - clientHeight;
}

const NEAR_END_PX = 24;

/** Keeps a scrolling element at its end while `isRunning`, unless the user scrolls away. Returns the scroll handler. */
export function useStickToEnd(scroller: RefObject<HTMLElement | null>, isRunning: boolean, shown: unknown): () => void {
  const isAt = useRef({ right: false, bottom: true });
  // biome-ignore lint/correctness/useExhaustiveDependencies: any new content may move the end
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null || !isRunning) return;
    if (isAt.current.right) element.scrollLeft = element.scrollWidth;
    if (isAt.current.bottom) element.scrollTop = element.scrollHeight;
  }, [scroller, isRunning, shown]);
  return useCallback(() => {
    const element = scroller.current;
    if (element === null) return;
    const { scrollLeft, scrollWidth, clientWidth } = element;
    isAt.current = {
      right: scrollWidth > clientWidth && scrollLeft + clientWidth >= scrollWidth - NEAR_END_PX,
      bottom: distanceToEnd(element) <= NEAR_END_PX,
    };
  }, [scroller]);
}

/** Returns the value of a context that has no default. Throws outside of the context's provider. */
export function useRequiredContext<T>(context: Context<T | null>): T {
  const value = useContext(context);
  if (value === null) throw new Error("a component is outside of the provider of its context");
  return value;
}
