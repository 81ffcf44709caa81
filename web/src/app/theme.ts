/** Light, dark, or as the system is. `public/theme.js` does the same before the first paint, so that nothing flashes. */

import { useSyncExternalStore } from "react";
import { KEY_PREFIX, readStored, writeStored } from "../client/storage";
import { Store } from "../client/store";

export type ThemeChoice = "system" | "light" | "dark";

export interface Theme {
  readonly choice: ThemeChoice;
  readonly dark: boolean;
  readonly set: (choice: ThemeChoice) => void;
}

const KEY = "theme";
const system = typeof matchMedia === "function" ? matchMedia("(prefers-color-scheme: dark)") : null;
const theme = new Store<Theme>(made(stored()));

function stored(): ThemeChoice {
  const choice = readStored<unknown>(KEY, "system");
  return choice === "light" || choice === "dark" ? choice : "system";
}

function made(choice: ThemeChoice): Theme {
  return { choice, dark: choice === "dark" || (choice === "system" && system?.matches === true), set };
}

function set(choice: ThemeChoice): void {
  writeStored(KEY, choice === "system" ? null : choice);
  apply(choice);
}

function apply(choice: ThemeChoice): void {
  const next = made(choice);
  document.documentElement.dataset.theme = next.dark ? "dark" : "light";
  theme.set(next);
}

apply(stored());
system?.addEventListener("change", () => apply(theme.getSnapshot().choice));
// Another tab has chosen.
window.addEventListener("storage", (event) => {
  if (event.key === null || event.key === KEY_PREFIX + KEY) apply(stored());
});

export function useTheme(): Theme {
  return useSyncExternalStore(theme.subscribe, theme.getSnapshot);
}
