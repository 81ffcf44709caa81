/** The shortcuts of the terminal pane. They are in a separate module, so that the list of shortcuts loads no xterm. */

import type { ShortcutInfo } from "../ui/useShortcuts";

const group = "In the terminal";

export const TERMINAL_SHORTCUTS: readonly ShortcutInfo[] = [
  { keys: "mod+f", title: "Search in the terminal", group },
  { keys: "mod+a", title: "Select all of the terminal", group },
];
