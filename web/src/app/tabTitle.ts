import { useEffect } from "react";
import type { RunState } from "../log/viewModel";

/** Prefixes of the browser tab's title that show the state of the newest run. */
const TAB_MARKS: Partial<Record<RunState, string>> = { running: "● ", waiting: "? " };

/** Shows a title and the state of a run in the browser's tab; "Limelight" if the title is empty. */
export function useTabTitle(title: string, state?: RunState): void {
  const mark = (state && TAB_MARKS[state]) ?? "";
  const tabTitle = title === "" ? "Limelight" : `${mark}${title} · Limelight`;
  useEffect(() => {
    document.title = tabTitle;
  }, [tabTitle]);
}
