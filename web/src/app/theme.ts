/**
 * The colour theme: light, dark, or the system's.
 *
 * `public/theme.js` applies the same rule before the first paint, so that a dark page does not flash light.
 */

import { onOtherTabChange, readStored, writeStored } from "../client/browserStorage";
import { Store } from "../client/store";

export type ThemeChoice = "system" | "light" | "dark";

interface Theme {
  readonly choice: ThemeChoice;
  readonly isDark: boolean;
}

const KEY = "theme";

/** The user's choice of theme. It is applied to the document and stored in the browser. */
export class ThemeStore extends Store<Theme> {
  private readonly system = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;

  constructor() {
    super({ choice: "system", isDark: false });
    this.apply(storedChoice());
    this.system?.addEventListener("change", () => this.apply(this.getSnapshot().choice));
    onOtherTabChange(KEY, () => this.apply(storedChoice()));
  }

  readonly choose = (choice: ThemeChoice): void => {
    writeStored(KEY, choice === "system" ? null : choice);
    this.apply(choice);
  };

  private apply(choice: ThemeChoice): void {
    const isDark = choice === "dark" || (choice === "system" && this.system?.matches === true);
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    this.set({ choice, isDark });
  }
}

function storedChoice(): ThemeChoice {
  const choice = readStored<unknown>(KEY, "system");
  return choice === "light" || choice === "dark" ? choice : "system";
}
