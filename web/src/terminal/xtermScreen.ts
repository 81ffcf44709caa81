/** The read-only xterm.js screen of the terminal pane. Its input comes from `TerminalWriter`, which sanitizes it. */

import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { type ITheme, Terminal } from "@xterm/xterm";
import type { Written } from "./terminalWriter";

/** The colours of xterm.js for the page's theme. `read` returns the value of a CSS custom property, e.g. `--ink`. */
function xtermTheme(read: (name: string) => string, isDark: boolean): ITheme {
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

/** Calls `changed` when the page's theme changes. Returns the function that unsubscribes. */
function onThemeChange(changed: () => void): () => void {
  const chosen = new MutationObserver(changed);
  chosen.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", changed);
  return () => {
    chosen.disconnect();
    system.removeEventListener("change", changed);
  };
}

const SCROLLBACK = 20_000;
/** Number of characters per write. xterm.js yields between writes, so that a long log does not block the page. */
const WRITE_SIZE = 16 * 1024;
const CLEAR_SCREEN = "\u001bc";
const HIDE_CURSOR = "\u001b[?25l";

export interface ScreenListener {
  /** Called when the screen starts or stops showing the end of the text. */
  readonly onFollow: (isFollowing: boolean) => void;
  readonly onSelect: (hasSelection: boolean) => void;
}

export class XtermScreen {
  private readonly terminal: Terminal;
  private readonly fitAddon = new FitAddon();
  private readonly searchAddon = new SearchAddon();
  private readonly disposers: (() => void)[] = [];
  private isFollowing = true;

  constructor(
    private readonly host: HTMLElement,
    watcher: ScreenListener,
  ) {
    this.terminal = new Terminal({
      disableStdin: true,
      convertEol: true,
      scrollback: SCROLLBACK,
      cursorBlink: false,
      cursorInactiveStyle: "none",
      fontSize: 12.5,
      lineHeight: 1.35,
      minimumContrastRatio: 4.5,
      overviewRuler: { width: 10 },
      linkHandler: null,
    });
    this.terminal.loadAddon(this.fitAddon);
    this.terminal.loadAddon(this.searchAddon);
    this.applyTheme();
    this.terminal.open(host);
    this.terminal.write(HIDE_CURSOR);
    this.disableInput();
    this.disposers.push(onThemeChange(() => this.applyTheme()));
    const subscriptions = [
      this.terminal.onRender(() => this.notifyFollow(watcher)),
      this.terminal.onSelectionChange(() => watcher.onSelect(this.terminal.hasSelection())),
    ];
    for (const subscription of subscriptions) this.disposers.push(() => subscription.dispose());
    const sizes = new ResizeObserver(() => this.fit());
    sizes.observe(host);
    this.disposers.push(() => sizes.disconnect());
    this.fit();
  }

  write({ startOver, text }: Written): void {
    if (startOver) this.terminal.write(CLEAR_SCREEN + HIDE_CURSOR);
    for (let at = 0; at < text.length; at += WRITE_SIZE) this.terminal.write(text.slice(at, at + WRITE_SIZE));
  }

  /** Scrolls by a number of lines, by a page, or to the beginning or the end. */
  scroll(to: number | "page up" | "page down" | "begin" | "end"): void {
    if (to === "page up") this.terminal.scrollPages(-1);
    else if (to === "page down") this.terminal.scrollPages(1);
    else if (to === "begin") this.terminal.scrollToTop();
    else if (to === "end") this.terminal.scrollToBottom();
    else this.terminal.scrollLines(to);
  }

  /** Selects the next or previous match. Returns false if there is none. Highlighting all matches would be too slow. */
  find(text: string, direction: "typed" | "next" | "previous"): boolean {
    if (text === "") this.terminal.clearSelection();
    if (text === "") return true;
    if (direction === "previous") return this.searchAddon.findPrevious(text);
    return this.searchAddon.findNext(text, { incremental: direction === "typed" });
  }

  get selection(): string {
    return this.terminal.getSelection();
  }

  selectAll(): void {
    this.terminal.selectAll();
  }

  dispose(): void {
    for (const end of this.disposers) end();
    this.terminal.dispose();
  }

  /** Fits the terminal to its container, unless the container is hidden. */
  private fit(): void {
    if (this.host.clientWidth === 0 || this.host.clientHeight === 0) return;
    this.fitAddon.fit();
  }

  private applyTheme(): void {
    const style = getComputedStyle(this.host);
    this.terminal.options.fontFamily = style.getPropertyValue("--mono").trim() || "monospace";
    this.terminal.options.theme = xtermTheme(
      (name) => style.getPropertyValue(name).trim(),
      getComputedStyle(document.documentElement).colorScheme === "dark",
    );
  }

  /** Disables xterm's input field and removes it from the tab order, because the pane handles the keyboard. */
  private disableInput(): void {
    const field = this.terminal.textarea;
    if (field) {
      field.tabIndex = -1;
      field.readOnly = true;
      field.addEventListener("focus", () => this.host.parentElement?.focus({ preventScroll: true }));
    }
    this.terminal.attachCustomKeyEventHandler(() => false);
  }

  private notifyFollow(watcher: ScreenListener): void {
    const { viewportY, baseY } = this.terminal.buffer.active;
    const isFollowing = viewportY >= baseY;
    if (isFollowing === this.isFollowing) return;
    this.isFollowing = isFollowing;
    watcher.onFollow(isFollowing);
  }
}
