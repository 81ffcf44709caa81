import { type RefObject, useLayoutEffect, useState } from "react";

/** The width of an element as it is now. */
export function useWidth(ref: RefObject<HTMLElement | null>, atFirst: number): number {
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
