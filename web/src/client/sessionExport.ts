/** Saving a conversation as a file, one at a time, with progress that can be watched and an end that can be put to it. */

import { reduce } from "../log/reduce";
import { EMPTY, type RunView } from "../log/view";
import { markdown } from "../sessions/markdownExport";
import { download, fileName } from "../ui/download";
import { api } from "../wire/api";
import type { LogRecord } from "../wire/events";
import { recordLines } from "./recordLines";
import { Watchable } from "./store";

export type ExportForm = "jsonl" | "markdown";

export interface ExportState {
  readonly title: string;
  /** 0 to 1. */
  readonly share: number;
  readonly error: string | null;
}

export class SessionExport {
  private readonly state = new Watchable<ExportState | null>(null);
  private abort = new AbortController();

  readonly subscribe = this.state.subscribe;
  readonly getSnapshot = this.state.getSnapshot;

  readonly start = async (sessionId: string, title: string, form: ExportForm): Promise<void> => {
    this.cancel();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.state.set({ title, share: 0, error: null });
    try {
      const lines: string[] = [];
      for await (const portion of recordLines(sessionId, signal)) {
        for (const line of portion.lines) lines.push(line);
        if (signal.aborted) return;
        this.state.set({ title, share: portion.share, error: null });
      }
      await save(lines, title, form, signal);
      if (!signal.aborted) this.state.set(null);
    } catch (error) {
      if (signal.aborted) return;
      this.state.set({ title, share: 0, error: error instanceof Error ? error.message : String(error) });
    }
  };

  /** Stop it, or put its error away. */
  readonly cancel = (): void => {
    this.abort.abort();
    this.state.set(null);
  };
}

/** The page's one export. */
export const sessionExport = new SessionExport();

async function save(lines: readonly string[], title: string, form: ExportForm, signal: AbortSignal): Promise<void> {
  if (form === "jsonl") {
    download(fileName(title, "jsonl"), [lines.map((line) => `${line}\n`).join("")], "application/jsonl");
    return;
  }
  const records = lines.map((line) => JSON.parse(line) as LogRecord);
  const runs = await Promise.all(reduce(EMPTY, records).runs.map((run) => whole(run, signal)));
  if (!signal.aborted) download(fileName(title, "md"), [markdown(title, runs)], "text/markdown");
}

/** The run with its whole question and answer, where the log has only their beginnings. */
async function whole(run: RunView, signal: AbortSignal): Promise<RunView> {
  const input = run.inputCut?.url ? await api.text(run.inputCut.url, signal) : run.input;
  const cut = run.answer?.cut;
  if (run.answer === null || !cut?.url) return { ...run, input };
  const text = await api.text(cut.url, signal);
  return { ...run, input, answer: { ...run.answer, content: text } };
}
