/**
 * Turns runs into the text that is written to the terminal: each call in bold, then its output, results and errors.
 *
 * Text of the log is untrusted. Output, results and errors pass an `AnsiSanitizer`, a new one for each call and kind,
 * so that no call can style or break the output of another one. Names of calls and titles of runs pass `stripAnsi`.
 */

import { formatBytes } from "../log/displayText";
import type { RunView, TerminalPiece, ToolItem } from "../log/viewModel";
import { AnsiSanitizer, stripAnsi } from "../text/sanitizeAnsi";

const ESC = "\u001b[";
const RESET_STYLE = `${ESC}0m`;
const BOLD = `${ESC}1m`;
const DIM = `${ESC}2m`;
const PROMPT = `${ESC}1;32m`;
const BASE_STYLES: Record<TerminalPiece["kind"], string> = {
  call: BOLD,
  stdout: "",
  stderr: `${ESC}91m`,
  result: DIM,
  error: `${ESC}31m`,
};

/** Number of characters of a result or an error that are written. */
export const MAX_RESULT = 2_000;
const MAX_TITLE = 80;
/** Maximum number of characters per write, about as many as the terminal's scrollback holds. Longer text is cut. */
export const MAX_WRITE = 2_000_000;
const OMITTED = `${DIM}… what was before is left out${RESET_STYLE}\n`;

export interface Written {
  /** Whether the terminal must be cleared before `text` is written. */
  readonly startOver: boolean;
  readonly text: string;
}

/** How much of a run's terminal content has been written. */
interface Progress {
  readonly runId: string;
  terminal: readonly TerminalPiece[];
  /** Number of pieces that were written, at least in part. */
  pieces: number;
  /** Number of characters of the last of these pieces that were written. */
  characters: number;
}

/** Writes growing runs to a terminal: remembers what was written, and returns only new text. */
export class TerminalWriter {
  private progress: Progress[] = [];
  private stream = new AnsiSanitizer();
  /** The run of the last written piece. `item` and `kind` are the call and the kind of that piece. */
  private runId = "";
  private item = -1;
  private kind: TerminalPiece["kind"] | null = null;
  private isAtLineStart = true;
  /** Whether a style may be active in the terminal. It stays active between pieces of the same call and kind. */
  private isStyled = false;

  /** Returns the text that is new since the last call; all text if the runs do not continue those of the last call. */
  next(runs: readonly RunView[]): Written {
    const startOver = !this.isContinuation(runs);
    if (startOver) this.reset();
    let text = "";
    for (const [index, run] of runs.entries()) {
      const written = this.progress[index] ?? { runId: run.runId, terminal: [], pieces: 0, characters: 0 };
      this.progress[index] = written;
      if (written.terminal !== run.terminal) text += this.write(run, written);
    }
    return { startOver, text: truncateStart(text) };
  }

  /** Whether these runs only extend the runs of the last call, so that the written text stays valid. */
  private isContinuation(runs: readonly RunView[]): boolean {
    return this.progress.every((written, index) => {
      const run = runs[index];
      if (run?.runId !== written.runId || run.terminal.length < written.pieces) return false;
      return written.pieces === 0 || (run.terminal[written.pieces - 1]?.text.length ?? 0) >= written.characters;
    });
  }

  private reset(): void {
    this.progress = [];
    this.runId = "";
    this.item = -1;
    this.kind = null;
    this.isAtLineStart = true;
    this.isStyled = false;
  }

  private write(run: RunView, written: Progress): string {
    let text = "";
    const next = Math.max(0, written.pieces - 1);
    const begin = firstToWrite(run.terminal, next);
    if (begin > next) {
      text += this.startLine() + OMITTED;
      written.pieces = begin;
    }
    for (let index = begin; index < run.terminal.length; index++) {
      const piece = run.terminal[index];
      if (piece === undefined) continue;
      const isNew = index >= written.pieces;
      const from = isNew ? 0 : written.characters;
      if (isNew) text += this.heading(run, piece);
      if (piece.text.length > from) text += this.piece(run, piece, from);
      written.pieces = index + 1;
      written.characters = piece.text.length;
    }
    written.terminal = run.terminal;
    return text;
  }

  /** The lines before a piece if its run or call differs from that of the previous piece; otherwise "". */
  private heading(run: RunView, piece: TerminalPiece): string {
    // The piece continues the previous one: long output is split into several pieces.
    if (this.runId === run.runId && this.item === piece.item && this.kind === piece.kind) return "";
    let heading = this.startLine();
    if (this.runId !== run.runId) {
      heading += this.runId === "" ? "" : "\n";
      heading += `${DIM}— turn ${run.turn || "?"}${title(run)} —${RESET_STYLE}\n`;
    } else if (piece.kind !== "call" && this.item !== piece.item && piece.text !== "") {
      const call = run.terminal.find((one) => one.item === piece.item && one.kind === "call");
      heading += `${DIM}[${callName(run, piece.item, call?.text ?? "")}]${RESET_STYLE}\n`;
    }
    this.runId = run.runId;
    if (piece.text !== "") {
      this.item = piece.item;
      this.kind = piece.kind;
    }
    this.stream = new AnsiSanitizer();
    return heading;
  }

  private piece(run: RunView, piece: TerminalPiece, from: number): string {
    if (piece.kind === "call") {
      const line = `${PROMPT}❯${RESET_STYLE} ${BOLD}${callName(run, piece.item, piece.text)}${RESET_STYLE}`;
      this.isAtLineStart = false;
      return line;
    }
    const isResult = piece.kind === "result" || piece.kind === "error";
    const base = BASE_STYLES[piece.kind];
    const shown = this.stream.feed(
      isResult ? piece.text.slice(0, MAX_RESULT) : piece.text.slice(from).slice(-MAX_WRITE),
    );
    if (shown !== "") this.isAtLineStart = /\n(?:\u001b\[[0-9;:]*[mK])*$/.test(shown);
    if (base || shown.includes(ESC)) this.isStyled = true;
    const coloured = (from === 0 ? base : "") + shown.replaceAll(/\u001b\[0?m/g, `$&${base}`);
    return isResult ? coloured + this.omittedNote(run, piece) : coloured;
  }

  /** A line that says how much of a result is omitted; "" if nothing is. */
  private omittedNote(run: RunView, piece: TerminalPiece): string {
    const truncation = callAt(run, piece.item)?.resultTruncation ?? null;
    const left = piece.text.length - MAX_RESULT;
    if (left <= 0 && truncation === null) return "";
    const amount = truncation
      ? `${formatBytes(truncation.size)} in all`
      : `${left.toLocaleString("en")} more characters`;
    const line = `${this.startLine()}${DIM}… ${amount}: open the tool's row${RESET_STYLE}`;
    this.isAtLineStart = false;
    return line;
  }

  /** Ends the active style and the current line, if there is one. */
  private startLine(): string {
    const line = (this.isStyled ? RESET_STYLE : "") + (this.isAtLineStart ? "" : "\n");
    this.isStyled = false;
    this.isAtLineStart = true;
    return line;
  }
}

/** Returns the terminal's content of these runs as plain text, for copying. */
export function plainTranscript(runs: readonly RunView[]): string {
  return stripAnsi(new TerminalWriter().next(runs).text).replaceAll("\r\n", "\n");
}

/** About the last `size` characters of a run's terminal content as plain text. Earlier pieces are not processed. */
export function plainEnd(run: RunView, size: number): string {
  const pieces: TerminalPiece[] = [];
  let room = size;
  for (let index = run.terminal.length - 1; index >= 0 && room > 0; index--) {
    const piece = run.terminal[index];
    if (piece === undefined) break;
    const isLong = (piece.kind === "stdout" || piece.kind === "stderr") && piece.text.length > room;
    pieces.unshift(isLong ? { ...piece, text: piece.text.slice(-room) } : piece);
    room -= piece.text.length;
  }
  return plainTranscript([{ ...run, terminal: pieces }]);
}

function title(run: RunView): string {
  const line =
    stripAnsi(run.input)
      .trim()
      .split(/[\n\r]/, 1)[0] ?? "";
  return line === "" ? "" : ` · ${line.length > MAX_TITLE ? `${line.slice(0, MAX_TITLE - 1)}…` : line}`;
}

/** Returns the line that names a call, after the name of the sub-agent that made it. */
function callName(run: RunView, item: number, call: string): string {
  const tool = callAt(run, item);
  const agent = tool?.agentId ? (run.agents.get(tool.agentId)?.label ?? "") : "";
  const line = call || (tool?.name ?? "");
  return stripAnsi(agent ? `${agent} › ${line}` : line).replaceAll(/[\n\r\b]/g, " ");
}

function callAt(run: RunView, item: number): ToolItem | null {
  const call = run.items[item];
  return call?.kind === "tool" ? call : null;
}

/** Returns the index of the first piece to write, at least `from`. At most about `MAX_WRITE` characters follow. */
function firstToWrite(pieces: readonly TerminalPiece[], from: number): number {
  let room = MAX_WRITE;
  for (let index = pieces.length - 1; index > from; index--) {
    room -= pieces[index]?.text.length ?? 0;
    if (room <= 0) return index;
  }
  return from;
}

/** Cuts a text that is much longer than `MAX_WRITE` to its end, after a note. Returns other texts unchanged. */
function truncateStart(text: string): string {
  if (text.length <= 1.5 * MAX_WRITE) return text;
  const tail = text.slice(-MAX_WRITE);
  return RESET_STYLE + OMITTED + tail.slice(tail.indexOf("\n") + 1);
}
