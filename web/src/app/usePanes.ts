import { useCallback, useEffect, useState } from "react";
import { writeStored } from "../client/storage";
import type { RunView } from "../log/view";
import { useMediaQuery } from "../ui/hooks";
import type { Pane } from "./activePane";
import { useActivePane } from "./SidePanel";
import { useStoredState } from "./useStoredState";

export interface Panes {
  readonly isNarrow: boolean;
  /** What a narrow screen shows. */
  readonly tab: Pane | "chat";
  /** What the right side of a wide one shows. */
  readonly pane: Pane;
  readonly hasSide: boolean;
  readonly show: (pane: Pane) => void;
  readonly showTab: (tab: Pane | "chat") => void;
  /** The user has picked a step: what is beside it stays. */
  readonly hold: () => void;
  readonly toggleSide: () => void;
}

/** Which pane is shown: the one that the agent works in, until the user picks one, or a step. */
export function usePanes(sessionId: string | null, newest: RunView | undefined): Panes {
  const isNarrow = useMediaQuery("(max-width: 899px)");
  const [hasSide, setHasSide] = useStoredState("side", true);
  const [picked, setPicked] = useState<Pane | null>(null);
  const [tab, showTab] = useState<Pane | "chat">("chat");
  const active = useActivePane(newest);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another session has its own activity
  useEffect(() => {
    showTab("chat");
    setPicked(null);
  }, [sessionId]);
  const show = useCallback(
    (wanted: Pane) => {
      setPicked(wanted);
      writeStored("pane", wanted);
      if (isNarrow) showTab(wanted);
      else setHasSide(true);
    },
    [isNarrow, setHasSide],
  );
  const hold = useCallback(() => {
    showTab("chat");
    setPicked((before) => before ?? active);
  }, [active]);
  const toggleSide = useCallback(() => setHasSide(!hasSide), [hasSide, setHasSide]);
  return { isNarrow, tab, pane: picked ?? active, hasSide, show, showTab, hold, toggleSide };
}
