/** The terminal's colours, from those of the page. */

import type { ITheme } from "@xterm/xterm";

/** `read` gives the value of a custom property, e.g. `--ink`. */
export function themeOf(read: (name: string) => string, isDark: boolean): ITheme {
  const ink = read("--ink");
  const red = read("--bad");
  const green = read("--ok");
  const yellow = read("--wait");
  const blue = read("--code-name");
  const magenta = read("--code-keyword");
  const cyan = isDark ? "#7fd1d8" : "#0f6b73";
  const slider = isDark ? "#ffffff" : "#000000";
  return {
    background: read("--back"),
    foreground: ink,
    cursor: read("--back"),
    selectionBackground: isDark ? "#3d5226" : "#cfe4ae",
    scrollbarSliderBackground: `${slider}26`,
    scrollbarSliderHoverBackground: `${slider}40`,
    scrollbarSliderActiveBackground: `${slider}59`,
    overviewRulerBorder: "#00000000",
    black: isDark ? read("--ink-faint") : ink,
    red,
    green,
    yellow,
    blue,
    magenta,
    cyan,
    white: isDark ? ink : read("--ink-soft"),
    brightBlack: read("--ink-faint"),
    brightRed: isDark ? "#f0a49d" : "#9c3d35",
    brightGreen: green,
    brightYellow: yellow,
    brightBlue: blue,
    brightMagenta: magenta,
    brightCyan: cyan,
    brightWhite: ink,
  };
}

/** Tell when the page turns from light to dark or back. */
export function watchTheme(changed: () => void): () => void {
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => {
    chosen.disconnect();
    system.removeEventListener("change", changed);
  };
}
