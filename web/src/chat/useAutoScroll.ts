import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** How near the end counts as the end. */
export const END_TOLERANCE = 48;
/** What moves within so many ms of a hand was moved by the user, and not by rows that found their height. */
const BY_HAND = 1000;
/** How the user takes over. */
export const USER_INPUT = ["wheel", "touchmove", "pointerdown", "keydown"] as const;
/** What the user opens has grown by then. */
const OPENING = 600;

export interface AutoScroll {
  readonly isFollowing: boolean;
  /** Go to the end, and stay there. */
  readonly toEnd: () => void;
  /** Stay here; for so many ms not even the end counts as a wish to follow, because heights are still being found. */
  readonly stay: (ms?: number) => void;
}

/**
 * Keeps a scrolling box at its end while the user is there and the log grows. Whoever scrolls up, or opens something to
 * read it, stays where they are until they come back or ask for the end.
 */
export function useAutoScroll(box: RefObject<HTMLElement | null>, inner: RefObject<HTMLElement | null>): AutoScroll {
  const [isFollowing, setFollowing] = useState(true);
  const following = useRef(true);
  const staysUntil = useRef(0);

  const follow = useCallback((wanted: boolean) => {
    following.current = wanted;
    setFollowing(wanted);
  }, []);
  const toEnd = useCallback(() => {
    staysUntil.current = 0;
    follow(true);
    const element = box.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, [box, follow]);
  const stay = useCallback(
    (ms = 0) => {
      staysUntil.current = performance.now() + ms;
      follow(false);
    },
    [follow],
  );

  useEffect(() => {
    const element = box.current;
    const content = inner.current;
    if (element === null || content === null) return;
    let touchedAt = Number.NEGATIVE_INFINITY;
    let openedAt = Number.NEGATIVE_INFINITY;
    let lastTop = 0;
    const isAtEnd = () => element.scrollHeight - element.scrollTop - element.clientHeight < END_TOLERANCE;
    const touched = (event: Event) => {
      touchedAt = performance.now();
      staysUntil.current = 0;
      const isOpening = event.target instanceof Element && event.target.closest("[aria-expanded]") !== null;
      if (isOpening && event.type !== "wheel" && event.type !== "touchmove") openedAt = touchedAt;
      if (event instanceof KeyboardEvent && event.key === "End") {
        touchedAt = Number.NEGATIVE_INFINITY; // rows on the way find their height, and what moves up then is no wish
        toEnd();
      }
    };
    const scrolled = () => {
      const isUp = element.scrollTop < lastTop - 2;
      lastTop = element.scrollTop;
      if (performance.now() < staysUntil.current) return;
      if (isAtEnd()) follow(true);
      else if (isUp && performance.now() - touchedAt < BY_HAND) follow(false);
    };
    const grown = new ResizeObserver(() => {
      if (!following.current) return;
      if (performance.now() - openedAt > OPENING) element.scrollTop = element.scrollHeight;
      else if (!isAtEnd()) follow(false);
    });
    element.addEventListener("scroll", scrolled, { passive: true });
    for (const hand of USER_INPUT) element.addEventListener(hand, touched, { passive: true });
    grown.observe(content);
    grown.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      for (const hand of USER_INPUT) element.removeEventListener(hand, touched);
      grown.disconnect();
    };
  }, [box, inner, follow, toEnd]);

  return { isFollowing, toEnd, stay };
}
