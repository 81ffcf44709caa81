/** The shortcuts of the terminal pane. In a module without xterm, because the list of shortcuts shows them too. */

import type { ShortcutInfo } from "../ui/useShortcuts";

const group = "In the terminal";

export const TERMINAL_SHORTCUTS: readonly ShortcutInfo[] = [
  { keys: "mod+f", title: "Search in the terminal", group },
  { keys: "mod+a", title: "Select all of the terminal", group },
];
