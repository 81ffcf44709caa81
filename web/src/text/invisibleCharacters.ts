/** Characters that a reader cannot see, or that move others about, as something to be seen. Pure. */

// Sequences of a terminal: colours and moves (CSI), titles and links (OSC and its like, up to their end), and short ones.
const ESCAPES =
  /(?:\u001b\[|\u009b)[0-?]*[ -/]*[@-~]|(?:\u001b[\]P^_X]|[\u009d\u0090])[^\u0007\u001b\u009c]*(?:\u0007|\u001b\\|\u009c)?|\u001b[ -/]*[0-~]/g;
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const HIDDEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u2028\u2029]/g;
/** Those that turn the direction of what follows. Marks alone are ordinary in texts of some languages. */
const BIDI_OVERRIDES = /[\u202a-\u202e\u2066-\u2069]/g;

const codePointLabel = (char: string) => `⟨U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`;

function controlPicture(char: string): string {
  const code = char.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? "␡" : codePointLabel(char);
}

/** Output or code as text: sequences of a terminal are gone, what else is hidden has a sign. */
export function escapeInvisible(text: string): string {
  return text
    .replace(ESCAPES, "")
    .replace(/\r\n?/g, "\n")
    .replace(HIDDEN, controlPicture)
    .replace(BIDI, codePointLabel);
}

/** Prose: only what would turn the text around is shown. */
export function escapeBidi(text: string): string {
  return text.replace(BIDI_OVERRIDES, codePointLabel);
}
