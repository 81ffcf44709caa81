/** The shortcuts of the code pane. In a module without CodeMirror, because the list of shortcuts shows them too. */

import type { ShortcutInfo } from "../ui/useShortcuts";

const group = "In the code";

export const PREVIOUS_VERSION: ShortcutInfo = { keys: "[", title: "The version of the code before", group };
export const NEXT_VERSION: ShortcutInfo = { keys: "]", title: "The next version of the code", group };
