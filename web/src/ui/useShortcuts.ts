/** Handles keyboard shortcuts. `mod` is ⌘ on a Mac and Ctrl elsewhere; "g c" is a sequence of two keys. */

import type { LucideIcon } from "lucide-react";
import { useEffect, useRef } from "react";

/** An action that the command palette lists. */
export interface Command {
  readonly id: string;
  readonly title: string;
  /** A longer description. */
  readonly hint?: string;
  readonly keys?: string;
  readonly icon?: LucideIcon;
  readonly disabled?: boolean;
  run(): void;
}

/** The keys and the description of a shortcut, for the list of shortcuts. */
export interface ShortcutInfo {
  readonly keys: string;
  readonly title: string;
  readonly group?: string;
}

export interface Shortcut extends ShortcutInfo {
  /** Whether the shortcut works while the user types in a field. */
  readonly inFields?: boolean;
  /** Whether the shortcut works while a dialog or a menu is open. */
  readonly overDialogs?: boolean;
  readonly disabled?: boolean;
  run(event: KeyboardEvent): void;
}

const SEQUENCE_MS = 1_000;
const OVERLAYS = '[role="dialog"], [role="alertdialog"], [role="menu"]';
const NON_TEXT_TYPES = new Set(["button", "checkbox", "color", "file", "image", "radio", "range", "reset", "submit"]);

function isMac(): boolean {
  return /mac|iphone|ipad/i.test(navigator.platform);
}

export function useShortcuts(bindings: readonly Shortcut[]): void {
  const latest = useRef(bindings);
  useEffect(() => {
    latest.current = bindings;
  });
  useEffect(() => {
    const onKeyDown = shortcutListener(() => latest.current);
    window.addEventListener("keydown", onKeyDown);
    return () => window.removeEventListener("keydown", onKeyDown);
  }, []);
}

/** Creates a keydown listener that runs the matching shortcut. It remembers the first key of a sequence. */
function shortcutListener(bindings: () => readonly Shortcut[]): (event: KeyboardEvent) => void {
  let firstKey = "";
  let firstKeyAt = 0;
  return (event) => {
    if (event.defaultPrevented || event.isComposing || MODIFIERS.has(event.key)) return;
    const first = event.timeStamp - firstKeyAt < SEQUENCE_MS ? firstKey : "";
    firstKey = "";
    const mac = isMac();
    const enabled = bindings().filter((one) => !one.disabled && isAllowed(one, event));
    const continues = (one: Shortcut) => first !== "" && one.keys.startsWith(`${first} `);
    const found =
      enabled.find((one) => continues(one) && matchesShortcut(event, secondOf(one.keys), mac)) ??
      enabled.find((one) => !one.keys.includes(" ") && matchesShortcut(event, one.keys, mac));
    if (found !== undefined) {
      event.preventDefault();
      found.run(event);
      return;
    }
    const beginning = enabled.find((one) => one.keys.includes(" ") && matchesShortcut(event, firstOf(one.keys), mac));
    if (beginning === undefined) return;
    firstKey = firstOf(beginning.keys);
    firstKeyAt = event.timeStamp;
  };
}

const MODIFIERS = new Set(["Shift", "Control", "Alt", "AltGraph", "Meta"]);

function firstOf(keys: string): string {
  return keys.split(" ")[0] ?? "";
}

function secondOf(keys: string): string {
  return keys.split(" ")[1] ?? "";
}

/** Whether an event matches one key with its modifiers, e.g. `mod+shift+o`. */
function matchesShortcut(event: KeyboardEvent, stroke: string, mac: boolean): boolean {
  const wanted = stroke.toLowerCase().split("+");
  const key = wanted.pop() ?? "";
  // On many keyboards `[` needs AltGr, which some systems report as Ctrl and Alt.
  const free = event.getModifierState?.("AltGraph") === true;
  const ctrl = wanted.includes("ctrl") || (!mac && wanted.includes("mod"));
  const meta = mac && wanted.includes("mod");
  if (!free && (event.ctrlKey !== ctrl || event.altKey !== wanted.includes("alt"))) return false;
  if (event.metaKey !== meta) return false;
  // Symbols such as `?` need Shift on some keyboards and not on others.
  const sign = key.length === 1 && key.toLowerCase() === key.toUpperCase();
  if (!sign && event.shiftKey !== wanted.includes("shift")) return false;
  return event.key.toLowerCase() === (KEY_NAMES[key] ?? key);
}

const KEY_NAMES: Record<string, string> = {
  esc: "escape",
  up: "arrowup",
  down: "arrowdown",
  left: "arrowleft",
  right: "arrowright",
  space: " ",
};

/** Whether a dialog or a menu is open. It handles keys itself. */
export function isOverlayOpen(): boolean {
  return document.querySelector(OVERLAYS) !== null;
}

function isAllowed(binding: Shortcut, event: KeyboardEvent): boolean {
  if (!binding.inFields && isTextField(event.target)) return false;
  return binding.overDialogs === true || !isOverlayOpen();
}

function isTextField(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !NON_TEXT_TYPES.has(target.type);
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement || isEditable(target);
}

function isEditable(target: HTMLElement): boolean {
  return target.closest('[contenteditable=""], [contenteditable="true"], [contenteditable="plaintext-only"]') !== null;
}

/** The labels of the keys of a shortcut, e.g. `["⌘", "K"]`. */
export function keyLabels(keys: string, mac = isMac()): readonly string[] {
  return keys.split(" ").flatMap((stroke) => stroke.split("+").map((key) => keyLabel(key.toLowerCase(), mac)));
}

function keyLabel(key: string, mac: boolean): string {
  const labels: Record<string, string> = {
    mod: mac ? "⌘" : "Ctrl",
    shift: mac ? "⇧" : "Shift",
    alt: mac ? "⌥" : "Alt",
    ctrl: mac ? "⌃" : "Ctrl",
    enter: "Enter",
    esc: "Esc",
    up: "↑",
    down: "↓",
    left: "←",
    right: "→",
    space: "Space",
    delete: "Del",
    home: "Home",
    end: "End",
    pageup: "PgUp",
    pagedown: "PgDn",
    plus: "+", // in `keys` a plus sign separates the keys of a combination
  };
  return labels[key] ?? key.toUpperCase();
}
