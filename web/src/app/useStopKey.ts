import { useEffect, useState } from "react";
import type { SessionStore } from "../client/session";
import { isOverlayOpen } from "../ui/shortcuts";

const ASKS_FOR = 3000;

/** Esc stops the agent, but asks once: true after the first press. Null while there is nothing to stop. */
export function useStopKey(store: SessionStore | null): boolean {
  const [asks, setAsks] = useState(false);
  useEffect(() => {
    if (store === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isAsking = false;
    const ask = (wanted: boolean) => {
      clearTimeout(timer);
      isAsking = wanted;
      setAsks(wanted);
      if (wanted) timer = setTimeout(() => ask(false), ASKS_FOR);
    };
    const press = (event: KeyboardEvent) => {
      if (event.key !== "Escape" || event.defaultPrevented || isOverlayOpen()) return;
      if (isAsking) store.stop();
      ask(!isAsking);
    };
    window.addEventListener("keydown", press);
    return () => {
      clearTimeout(timer);
      setAsks(false);
      window.removeEventListener("keydown", press);
    };
  }, [store]);
  return asks;
}
