import { useState } from "react";
import type { ToolItem } from "../log/view";
import type { Version } from "./versions";

export interface Choice {
  /** The place of the version that is shown; -1 if there is none. */
  readonly index: number;
  readonly isFollowing: boolean;
  readonly pick: (key: string) => void;
  readonly follow: () => void;
}

/** Which version is shown: the newest, until somebody picks one or asks for the code of a call elsewhere. */
export function useVersion(versions: readonly Version[], focus: ToolItem | null): Choice {
  const [picked, setPicked] = useState<string | null>(null);
  const [lastFocus, setLastFocus] = useState<string | null>(null);
  const focusKey = focus?.key ?? null;
  if (focusKey !== lastFocus) {
    setLastFocus(focusKey);
    if (versions.some((version) => version.key === focusKey)) setPicked(focusKey);
  }
  const place = picked === null ? -1 : versions.findIndex((version) => version.key === picked);
  return {
    index: place < 0 ? versions.length - 1 : place,
    isFollowing: place < 0,
    pick: setPicked,
    follow: () => setPicked(null),
  };
}
