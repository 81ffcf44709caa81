/** The shortcuts of the timeline pane. They are in a separate module, so that the list of shortcuts loads no chart. */

import type { ShortcutInfo } from "../ui/useShortcuts";

const group = "In the timeline";

/** The keys that `Chart` handles. */
export const TIMELINE_SHORTCUTS: readonly ShortcutInfo[] = [
  { keys: "up", title: "The row above", group },
  { keys: "down", title: "The row below", group },
  { keys: "pageup", title: "One page up", group },
  { keys: "pagedown", title: "One page down", group },
  { keys: "home", title: "The first row", group },
  { keys: "end", title: "The last row", group },
  { keys: "left", title: "The row that contains this one", group },
  { keys: "right", title: "The first row inside this one", group },
  { keys: "enter", title: "Show the row in the conversation", group },
  { keys: "plus", title: "Zoom in", group },
  { keys: "-", title: "Zoom out", group },
  { keys: "0", title: "Show the whole run", group },
];
