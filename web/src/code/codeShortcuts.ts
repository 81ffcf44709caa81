/** The shortcuts of the code pane. They are in a separate module, so that the list of shortcuts loads no CodeMirror. */

import type { ShortcutInfo } from "../ui/useShortcuts";

const group = "In the code";

export const PREVIOUS_VERSION: ShortcutInfo = { keys: "[", title: "The previous version of the code", group };
export const NEXT_VERSION: ShortcutInfo = { keys: "]", title: "The next version of the code", group };
