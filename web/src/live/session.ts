/**
 * A session as the page follows it: the socket's frames folded into one value that React watches.
 *
 * Records are gathered and folded a few times a second, long logs in slices, so that the page never stands still. What
 * was shown stays through a cut; what was missed is asked for from exactly there.
 */

import { noteGap, reduce } from "../log/reduce";
import { type ApprovalItem, type Args, EMPTY, type SessionView } from "../log/view";
import { ApiError, api } from "../wire/api";
import type { Decision, LogRecord } from "../wire/events";
import { type Frame, parseFrame, type SessionInfo } from "../wire/frames";
import { Link, type LinkStatus } from "./link";
import { keep, kept, type Pending, unseen } from "./outbox";
import { Watchable } from "./watchable";

export interface LiveSession {
  readonly sessionId: string;
  readonly view: SessionView;
  readonly info: SessionInfo | null;
  readonly link: LinkStatus;
  /** How much of a long log has come, 0 to 1; null once all of it is there. */
  readonly loading: number | null;
  readonly pending: readonly Pending[];
  /** Approvals whose decision is on its way. */
  readonly deciding: ReadonlySet<string>;
  /** What the server said was wrong with what the user did last. */
  readonly notice: string | null;
  /** How far this machine's clock is ahead of the server's, in ms. */
  readonly clockSkew: number;
}

const DELETED: LinkStatus = { kind: "ended", why: "deleted", reason: "" };
const PACE = 40;
const SLICE = 500;
/** So many ms are folded at a stretch, less than a frame; nobody waits for a page that nobody sees. */
const STRETCH = 12;
const UNSEEN_STRETCH = 500;

export class SessionStore extends Watchable<LiveSession> {
  private readonly link: Link;
  private readonly inbox: LogRecord[] = [];
  private folding = false;
  /** The end of the log as the server told it: up to there it is history. */
  private goal = 0;
  private folded: SessionView = EMPTY;
  private skew: number | null = null;
  private closed = false;

  constructor(
    readonly sessionId: string,
    private readonly agent: string | null = null,
  ) {
    super({
      sessionId,
      view: EMPTY,
      info: null,
      link: { kind: "connecting" },
      loading: 0,
      pending: kept(sessionId),
      deciding: new Set(),
      notice: null,
      clockSkew: 0,
    });
    this.link = new Link(() => this.path(), {
      open: () => this.resend(),
      message: (text) => this.take(parseFrame(text)),
      status: (link) => this.change({ link }),
    });
  }

  ask(text: string, ifBusy: Pending["ifBusy"]): void {
    const one: Pending = { requestId: newId(), text, ifBusy, at: Date.now(), error: null, runId: null };
    this.post([...this.now.pending, one]);
    this.transmit(one);
  }

  /** Take back a message that has not begun. */
  withdraw(one: Pending): void {
    if (one.error === null) this.link.send({ type: "cancel", request_id: one.requestId });
    this.post(this.now.pending.filter((other) => other.requestId !== one.requestId));
  }

  /** Send a refused message again. */
  retry(one: Pending): void {
    const again = { ...one, error: null, requestId: newId() };
    this.post(this.now.pending.map((other) => (other.requestId === one.requestId ? again : other)));
    this.transmit(again);
  }

  stop(): void {
    this.change({ notice: null });
    if (!this.link.send({ type: "cancel" })) this.change({ notice: "Not connected: the agent was not stopped." });
  }

  decide(asked: ApprovalItem, decision: Decision, more: { args?: Args; reason?: string } = {}): void {
    const sent = this.link.send({ type: "approve", approval_id: asked.approvalId, decision, ...more });
    if (!sent) this.change({ notice: "Not connected: your decision was not sent." });
    else this.change({ notice: null, deciding: new Set([...this.now.deciding, asked.approvalId]) });
  }

  /** Tell the user what went wrong; null takes it away again. */
  note(notice: string | null): void {
    this.change({ notice });
  }

  reconnect(): void {
    this.link.hurry();
  }

  close(): void {
    this.closed = true;
    this.link.close();
  }

  private get now(): LiveSession {
    return this.getSnapshot();
  }

  private change(part: Partial<LiveSession>): void {
    this.set({ ...this.now, ...part });
  }

  private post(pending: readonly Pending[]): void {
    keep(this.sessionId, pending);
    this.change({ pending });
  }

  private path(): string {
    const query = new URLSearchParams({ format: "records", packed: "1", after: String(this.folded.seq) });
    if (this.agent !== null && this.folded.seq === 0) query.set("agent_type", this.agent);
    return `api/v2/ws/${encodeURIComponent(this.sessionId)}?${query}`;
  }

  private transmit(one: Pending): void {
    this.link.send({ type: "query", query: one.text, if_busy: one.ifBusy, request_id: one.requestId });
  }

  private resend(): void {
    this.inbox.length = 0;
    for (const one of this.now.pending) if (one.error === null) this.transmit(one);
  }

  private take(frame: Frame): void {
    switch (frame.type) {
      case "records":
        this.inbox.push(...frame.records);
        return this.foldSoon();
      case "gap":
        this.foldNow();
        this.folded = noteGap(this.folded, frame.gap);
        return this.foldSoon();
      case "state":
        this.goal = Math.max(this.goal, Number(frame.state.cursor));
        this.change({ info: frame.state, loading: this.progress() });
        return;
      case "accepted":
        return this.accepted(frame.request_id, frame.run_id);
      case "decided":
        return this.settled(frame.approval_id);
      case "error":
        return this.refused(frame.message, frame.error_code, frame.request_id);
      default:
    }
  }

  private progress(): number | null {
    return this.folded.seq >= this.goal ? null : this.folded.seq / Math.max(1, this.goal);
  }

  private foldSoon(): void {
    if (this.folding) return;
    this.folding = true;
    setTimeout(() => this.foldSlice(), this.now.loading === null ? PACE : 0);
  }

  /** A stretch of what has come; the browser gets its turn before the next. */
  private foldSlice(): void {
    this.folding = false;
    if (this.closed) return;
    this.foldFor(document.hidden ? UNSEEN_STRETCH : STRETCH);
    const loading = this.progress();
    if (loading === null || this.now.loading === null) this.publish();
    else this.change({ loading });
    if (this.inbox.length > 0) this.foldSoon();
  }

  private foldFor(ms: number): void {
    const end = performance.now() + ms;
    let from = 0;
    do {
      this.folded = reduce(this.folded, this.inbox.slice(from, from + SLICE));
      from += SLICE;
    } while (from < this.inbox.length && performance.now() < end);
    this.inbox.splice(0, from);
  }

  private foldNow(): void {
    this.folded = reduce(this.folded, this.inbox.splice(0));
  }

  private publish(): void {
    const pending = unseen(this.now.pending, this.now.view, this.folded);
    if (pending !== this.now.pending) keep(this.sessionId, pending);
    const newest = this.folded.runs[this.folded.runs.length - 1];
    const isLive = this.now.loading === null && newest !== undefined && newest.endedAt === null;
    // The smallest difference is the one with the least delay in it.
    if (isLive) this.skew = Math.min(this.skew ?? Number.POSITIVE_INFINITY, Date.now() - newest.lastAt);
    const clockSkew = this.skew ?? 0;
    const deciding = newest?.endedAt === null || this.now.deciding.size === 0 ? this.now.deciding : new Set<string>();
    this.change({ view: this.folded, loading: this.progress(), pending, clockSkew, deciding });
  }

  private accepted(requestId: string, runId: string): void {
    const known = this.now.view.runs.some((run) => run.runId === runId);
    const named = this.now.pending.map((one) => (one.requestId === requestId ? { ...one, runId } : one));
    this.post(known ? named.filter((one) => one.runId !== runId) : named);
  }

  private settled(approvalId: string): void {
    const deciding = new Set(this.now.deciding);
    deciding.delete(approvalId);
    this.change({ deciding });
  }

  private refused(message: string, code: string, requestId: string | undefined): void {
    if (code === "bad_cursor" && requestId === undefined) void this.startOver();
    else if (requestId === undefined) this.change({ notice: message, deciding: new Set() });
    else this.post(this.now.pending.map((one) => (one.requestId === requestId ? { ...one, error: message } : one)));
  }

  /**
   * Our place is not in the log: the session is gone, or another has its name and nothing of what we have is true.
   * Only in the second case we connect again, because connecting would bring a deleted session back to life.
   */
  private async startOver(): Promise<void> {
    try {
      await api.session(this.sessionId);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) this.change({ link: DELETED });
      return;
    }
    this.inbox.length = 0;
    this.folded = EMPTY;
    this.goal = 0;
    this.change({ view: EMPTY, loading: 0 });
    this.link.restart();
  }
}

export function newId(): string {
  // Not `randomUUID`: browsers offer that only over https and on localhost.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
