import { type RefObject, useCallback, useEffect, useRef, useState } from "react";

/** How near the end counts as the end. */
const NEAR = 48;
/** What moves within so many ms of these was moved by the user, and not by rows that found their height. */
const BY_HAND = 1000;
const HANDS = ["wheel", "touchmove", "pointerdown", "keydown"] as const;

/**
 * Keeps a scrolling box at its end while the user is there. Whoever scrolls up stays where they are until they come
 * back or ask for the end.
 */
export function useFollow(box: RefObject<HTMLElement | null>, inner: RefObject<HTMLElement | null>) {
  const [isFollowing, setFollowing] = useState(true);
  const following = useRef(true);
  const lastTop = useRef(0);

  const follow = useCallback((wanted: boolean) => {
    following.current = wanted;
    setFollowing(wanted);
  }, []);

  const toEnd = useCallback(() => {
    follow(true);
    const element = box.current;
    if (element) element.scrollTop = element.scrollHeight;
  }, [box, follow]);

  useEffect(() => {
    const element = box.current;
    const content = inner.current;
    if (element === null || content === null) return;
    let touchedAt = 0;
    const touched = () => {
      touchedAt = performance.now();
    };
    const scrolled = () => {
      const isAtEnd = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR;
      if (isAtEnd) follow(true);
      else if (element.scrollTop < lastTop.current - 2 && performance.now() - touchedAt < BY_HAND) follow(false);
      lastTop.current = element.scrollTop;
    };
    const grown = new ResizeObserver(() => {
      if (following.current) element.scrollTop = element.scrollHeight;
    });
    element.addEventListener("scroll", scrolled, { passive: true });
    for (const hand of HANDS) element.addEventListener(hand, touched, { passive: true });
    grown.observe(content);
    grown.observe(element);
    return () => {
      element.removeEventListener("scroll", scrolled);
      for (const hand of HANDS) element.removeEventListener(hand, touched);
      grown.disconnect();
    };
  }, [box, inner, follow]);

  return { isFollowing, toEnd, follow };
}
