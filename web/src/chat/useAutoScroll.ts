import { type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { distanceToEnd } from "../ui/hooks";

/** Distance from the end, in px, within which an element counts as scrolled to its end. */
export const END_TOLERANCE = 48;
/** Time after an input event in which scrolling counts as the user's, and not as an effect of rows changing height. */
const INPUT_MS = 1000;
/** Input events with which the user scrolls. */
export const USER_INPUT = ["wheel", "touchmove", "pointerdown", "keydown"] as const;
/** Time that a row needs to reach its full height after the user expands it. */
const EXPANDING_MS = 600;

export interface AutoScroll {
  readonly isFollowing: boolean;
  /** Scrolls to the end and starts following new content. */
  readonly toEnd: () => void;
  /** Stops following. For `ms`, reaching the end does not restart it, because rows may still change their height. */
  readonly pause: (ms?: number) => void;
}

/**
 * Keeps a scrolling element at its end while its content grows.
 *
 * Following stops when the user scrolls up or expands something, and starts again at the end.
 */
export function useAutoScroll(box: RefObject<HTMLElement | null>, inner: RefObject<HTMLElement | null>): AutoScroll {
  const [isFollowing, setFollowing] = useState(true);
  const following = useRef(true);
  const pausedUntil = useRef(0);

  const follow = useCallback((wanted: boolean) => {
    following.current = wanted;
    setFollowing(wanted);
  }, []);
  const toEnd = useCallback(() => {
    pausedUntil.current = 0;
    follow(true);
    const element = box.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, [box, follow]);
  const pause = useCallback(
    (ms = 0) => {
      pausedUntil.current = performance.now() + ms;
      follow(false);
    },
    [follow],
  );

  useEffect(() => {
    const element = box.current;
    const content = inner.current;
    if (element === null || content === null) return;
    let inputAt = Number.NEGATIVE_INFINITY;
    let expandedAt = Number.NEGATIVE_INFINITY;
    let lastTop = 0;
    const isAtEnd = () => distanceToEnd(element) < END_TOLERANCE;
    const onInput = (event: Event) => {
      inputAt = performance.now();
      pausedUntil.current = 0;
      const isExpanding = event.target instanceof Element && event.target.closest("[aria-expanded]") !== null;
      if (isExpanding && event.type !== "wheel" && event.type !== "touchmove") expandedAt = inputAt;
      if (event instanceof KeyboardEvent && event.key === "End") {
        inputAt = Number.NEGATIVE_INFINITY; // rows that change their height must not count as scrolling up
        toEnd();
      }
    };
    const onScroll = () => {
      const isUp = element.scrollTop < lastTop - 2;
      lastTop = element.scrollTop;
      if (performance.now() < pausedUntil.current) return;
      if (isAtEnd()) follow(true);
      else if (isUp && performance.now() - inputAt < INPUT_MS) follow(false);
    };
    const resizeObserver = new ResizeObserver(() => {
      if (!following.current) return;
      if (performance.now() - expandedAt > EXPANDING_MS) element.scrollTop = element.scrollHeight;
      else if (!isAtEnd()) follow(false);
    });
    element.addEventListener("scroll", onScroll, { passive: true });
    for (const type of USER_INPUT) element.addEventListener(type, onInput, { passive: true });
    resizeObserver.observe(content);
    resizeObserver.observe(element);
    return () => {
      element.removeEventListener("scroll", onScroll);
      for (const type of USER_INPUT) element.removeEventListener(type, onInput);
      resizeObserver.disconnect();
    };
  }, [box, inner, follow, toEnd]);

  return { isFollowing, toEnd, pause };
}
