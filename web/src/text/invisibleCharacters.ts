/** Shows characters that a reader cannot see, or that reorder others. Pure. */

import { BIDI_OVERRIDES, removeEscapeSequences } from "./sanitizeAnsi";

const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028\u2029]/g;

const codePointLabel = (char: string) => `⟨U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

function controlPicture(char: string): string {
  const code = char.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "␡" : codePointLabel(char);
}

/** Output, code or a name as text: without escape sequences, with a visible sign for each invisible character. */
export function escapeInvisible(text: string): string {
  return removeEscapeSequences(text)
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, controlPicture)
    .replace(BIDI, codePointLabel);
}

/** Prose with visible signs for bidirectional overrides. Direction marks stay: some languages need them. */
export function escapeBidi(text: string): string {
  return text.replace(BIDI_OVERRIDES, codePointLabel);
}
