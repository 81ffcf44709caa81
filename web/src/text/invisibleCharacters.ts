/** Replaces invisible characters, and characters that reorder text, by visible signs. Pure. */

import { BIDI_OVERRIDES, removeEscapeSequences } from "./sanitizeAnsi";

const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028\u2029]/g;

const codePointLabel = (char: string) => `⟨U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

function controlPicture(char: string): string {
  const code = char.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "␡" : codePointLabel(char);
}

/** Removes escape sequences from output, code or a name, and replaces invisible characters by visible signs. */
export function escapeInvisible(text: string): string {
  return removeEscapeSequences(text)
    .replace(/\r\n?/g, "\n")
    .replace(CONTROLS, controlPicture)
    .replace(BIDI, codePointLabel);
}

/** Replaces bidirectional overrides in prose by visible signs. Direction marks stay: some languages need them. */
export function escapeBidi(text: string): string {
  return text.replace(BIDI_OVERRIDES, codePointLabel);
}
