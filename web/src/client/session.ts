/**
 * A session as the page shows it: the socket's frames, reduced to one value.
 *
 * Records are collected and reduced a few times a second, long logs in slices, so that the page stays responsive.
 * After a reconnect the log continues at the last known record.
 */

import { addGap, reduce } from "../log/reduce";
import { type ApprovalItem, type Args, EMPTY, type Item, type RunView, type SessionView } from "../log/view";
import type { Decision, LogRecord } from "../wire/events";
import { type Frame, parseFrame, type SessionInfo } from "../wire/frames";
import { MessageSender } from "./messageSender";
import type { OutboxMessage } from "./outbox";
import { ReconnectingSocket, type SocketStatus } from "./reconnectingSocket";
import { sessionExists } from "./sessionExists";
import { Store } from "./store";

export interface LiveSession {
  readonly sessionId: string;
  readonly view: SessionView;
  readonly info: SessionInfo | null;
  readonly connection: SocketStatus;
  /** Part of a long log that has arrived, 0 to 1; null when it is complete. */
  readonly loading: number | null;
  readonly pending: readonly OutboxMessage[];
  /** Approvals whose decision is being sent. */
  readonly deciding: ReadonlySet<string>;
  /** The server's last error about an action of the user. */
  readonly notice: string | null;
  /** How far this machine's clock is ahead of the server's, in ms. */
  readonly clockSkew: number;
}

const DELETED: SocketStatus = { kind: "ended", why: "deleted", reason: "" };
const PACE = 40;
const SLICE = 500;
/** Time in ms for reducing records without a pause: less than a frame, more in a hidden tab. */
const STRETCH = 12;
const UNSEEN_STRETCH = 500;

export class SessionStore extends Store<LiveSession> {
  private readonly socket: ReconnectingSocket;
  private readonly sender: MessageSender;
  private readonly inbox: LogRecord[] = [];
  private folding = false;
  /** The end of the log that the server announced. */
  private goal = 0;
  private folded: SessionView = EMPTY;
  /** The first such end: what happened before this page was opened. */
  private history: number | null = null;
  private skew: number | null = null;
  private closed = false;
  /** Decisions being sent, by approval. */
  private readonly decisions = new Map<string, { command: object; isRepeated: boolean }>();
  private looking: AbortController | null = null;

  constructor(
    readonly sessionId: string,
    private readonly agent: string | null = null,
  ) {
    super({
      sessionId,
      view: EMPTY,
      info: null,
      connection: { kind: "connecting" },
      loading: 0,
      pending: [],
      deciding: new Set(),
      notice: null,
      clockSkew: 0,
    });
    const send = (message: object) => this.socket.send(message);
    this.sender = new MessageSender(sessionId, send, (pending) => this.change({ pending }));
    this.change({ pending: this.sender.pending });
    this.socket = new ReconnectingSocket(() => this.path(), {
      open: () => this.resend(),
      message: (text) => this.take(parseFrame(text)),
      status: (connection) => this.connectionChanged(connection),
    });
  }

  ask(text: string, ifBusy: OutboxMessage["ifBusy"]): void {
    this.sender.ask(text, ifBusy);
  }

  /** Withdraws a message that is not a run yet. */
  withdraw(one: OutboxMessage): void {
    this.sender.withdraw(one);
  }

  /** Sends a refused message again. */
  retry(one: OutboxMessage): void {
    this.sender.retry(one);
    if (this.now.connection.kind === "ended") this.reconnect();
  }

  stop(): void {
    this.change({ notice: null });
    if (!this.socket.send({ type: "cancel" })) this.change({ notice: "Not connected: the agent was not stopped." });
  }

  decide(asked: ApprovalItem, decision: Decision, more: { args?: Args; reason?: string } = {}): void {
    const command = { type: "approve", approval_id: asked.approvalId, decision, ...more };
    if (!this.socket.send(command)) return this.change({ notice: "Not connected: your decision was not sent." });
    this.decisions.set(asked.approvalId, { command, isRepeated: false });
    this.change({ notice: null, deciding: new Set(this.decisions.keys()) });
  }

  /** Shows a message to the user; null hides it. */
  showNotice(notice: string | null): void {
    this.change({ notice });
  }

  reconnect(): void {
    if (this.looking !== null) return void this.startOver();
    if (this.now.connection.kind !== "ended") return this.socket.hurry();
    // Connecting again would recreate a deleted session.
    if (this.now.connection.why === "deleted") return;
    this.change({ notice: null });
    this.socket.restart();
  }

  close(): void {
    this.closed = true;
    this.sender.close();
    this.looking?.abort();
    this.socket.close();
  }

  private get now(): LiveSession {
    return this.getSnapshot();
  }

  private change(part: Partial<LiveSession>): void {
    this.set({ ...this.now, ...part });
  }

  private connectionChanged(connection: SocketStatus): void {
    this.change({ connection });
    if (connection.kind !== "ended" || this.looking !== null) return;
    // The server accepts no messages any more; the user gets them back.
    const reason = this.now.notice ?? connection.reason;
    for (const one of this.sender.pending) if (one.error === null) this.sender.refused(one.requestId, reason, "");
  }

  private path(): string {
    const query = new URLSearchParams({ format: "records", packed: "1", after: String(this.folded.seq) });
    if (this.agent !== null && this.folded.seq === 0) query.set("agent_type", this.agent);
    return `api/v2/ws/${encodeURIComponent(this.sessionId)}?${query}`;
  }

  /** Sends again what may not have arrived before the connection was lost. */
  private resend(): void {
    this.inbox.length = 0;
    this.sender.again();
    for (const [id, { command }] of this.decisions) {
      this.socket.send(command);
      this.decisions.set(id, { command, isRepeated: true });
    }
  }

  private take(frame: Frame): void {
    switch (frame.type) {
      case "records":
        this.inbox.push(...frame.records);
        return this.foldSoon();
      case "gap":
        this.foldNow();
        this.folded = addGap(this.folded, frame.gap);
        return this.foldSoon();
      case "state":
        this.socket.greeted();
        this.goal = Math.max(this.goal, Number(frame.state.cursor));
        this.history ??= this.goal;
        this.change({ info: frame.state, loading: this.progress() });
        return;
      case "accepted":
        return this.accepted(frame.request_id, frame.run_id);
      case "decided":
        return this.settled(frame.approval_id);
      case "error":
        return this.refused(frame);
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

  /** Reduces for a limited time; the browser gets its turn before the next call. */
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
    const { view } = this.now;
    const before = view.seq < (this.history ?? 0) ? this.folded : view;
    this.sender.seen(before, this.folded, this.skew ?? 0);
    const newest = this.folded.runs[this.folded.runs.length - 1];
    const isLive = this.now.loading === null && newest !== undefined && newest.endedAt === null;
    // The smallest difference contains the least delay.
    if (isLive) this.skew = Math.min(this.skew ?? Number.POSITIVE_INFINITY, Date.now() - newest.lastAt);
    const clockSkew = this.skew ?? 0;
    for (const id of this.decisions.keys()) if (!waitsFor(newest, id)) this.decisions.delete(id);
    const isSame = this.decisions.size === this.now.deciding.size;
    const deciding = isSame ? this.now.deciding : new Set(this.decisions.keys());
    this.change({ view: this.folded, loading: this.progress(), clockSkew, deciding });
  }

  private accepted(requestId: string, runId: string): void {
    const known = this.now.view.runs.some((run) => run.runId === runId);
    this.sender.accepted(requestId, runId, known);
  }

  private settled(approvalId: string): void {
    this.decisions.delete(approvalId);
    this.change({ deciding: new Set(this.decisions.keys()) });
  }

  private refused({ message, error_code: code, request_id, retry_after }: Extract<Frame, { type: "error" }>): void {
    if (request_id !== undefined) return this.sender.refused(request_id, message, code);
    if (code === "bad_cursor") return void this.startOver();
    if (this.socket.refused(code, message, retry_after ?? 0)) return;
    // The first decision arrived before the connection was lost; the second was redundant.
    const isOurs = code === "already_decided" && [...this.decisions.values()].some((one) => one.isRepeated);
    this.decisions.clear();
    this.change({ deciding: new Set(), ...(isOurs ? {} : { notice: message }) });
  }

  /**
   * The cursor is not in the log: the session was deleted, or another one has its id. Connects again only in the
   * second case, because connecting would recreate a deleted session.
   */
  private async startOver(): Promise<void> {
    this.looking?.abort();
    const looking = new AbortController();
    this.looking = looking;
    const since = this.now.connection.kind === "lost" ? this.now.connection.since : Date.now();
    const waiting = (ms: number) => this.change({ connection: { kind: "lost", since, next: Date.now() + ms } });
    const isThere = await sessionExists(this.sessionId, looking.signal, waiting).catch(() => null);
    if (isThere === null || looking.signal.aborted) return;
    this.looking = null;
    if (!isThere) return this.change({ connection: DELETED });
    this.inbox.length = 0;
    this.folded = EMPTY;
    this.goal = 0;
    this.history = null;
    this.change({ view: EMPTY, loading: 0 });
    this.socket.restart();
  }
}

/** Whether the approval is open. */
function waitsFor(run: RunView | undefined, approvalId: string): boolean {
  if (run === undefined || run.endedAt !== null) return false;
  const isAsked = (item: Item) => item.kind === "approval" && item.approvalId === approvalId && item.decision === null;
  return run.items.some(isAsked);
}
