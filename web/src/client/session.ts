/**
 * A session as the page follows it: the socket's frames folded into one value that React watches.
 *
 * Records are gathered and folded a few times a second, long logs in slices, so that the page never stands still. What
 * was shown stays through a cut; what was missed is asked for from exactly there.
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
  /** How much of a long log has come, 0 to 1; null once all of it is there. */
  readonly loading: number | null;
  readonly pending: readonly OutboxMessage[];
  /** Approvals whose decision is on its way. */
  readonly deciding: ReadonlySet<string>;
  /** What the server said was wrong with what the user did last. */
  readonly notice: string | null;
  /** How far this machine's clock is ahead of the server's, in ms. */
  readonly clockSkew: number;
}

const DELETED: SocketStatus = { kind: "ended", why: "deleted", reason: "" };
const PACE = 40;
const SLICE = 500;
/** So many ms are folded at a stretch, less than a frame; nobody waits for a page that nobody sees. */
const STRETCH = 12;
const UNSEEN_STRETCH = 500;

export class SessionStore extends Store<LiveSession> {
  private readonly socket: ReconnectingSocket;
  private readonly sender: MessageSender;
  private readonly inbox: LogRecord[] = [];
  private folding = false;
  /** The end of the log as the server told it: up to there it is history. */
  private goal = 0;
  private folded: SessionView = EMPTY;
  /** The same when it was first told: what had happened before this page looked. */
  private history: number | null = null;
  private skew: number | null = null;
  private closed = false;
  /** Decisions on their way, by approval. */
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

  /** Take back a message that has not begun. */
  withdraw(one: OutboxMessage): void {
    this.sender.withdraw(one);
  }

  /** Send a refused message again. */
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

  /** Tell the user what went wrong; null takes it away again. */
  showNotice(notice: string | null): void {
    this.change({ notice });
  }

  reconnect(): void {
    if (this.looking !== null) return void this.startOver();
    if (this.now.connection.kind !== "ended") return this.socket.hurry();
    // To go there again would bring a deleted session back to life.
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
    // Nobody will take them any more; who wrote them gets them back.
    const reason = this.now.notice ?? connection.reason;
    for (const one of this.sender.pending) if (one.error === null) this.sender.refused(one.requestId, reason, "");
  }

  private path(): string {
    const query = new URLSearchParams({ format: "records", packed: "1", after: String(this.folded.seq) });
    if (this.agent !== null && this.folded.seq === 0) query.set("agent_type", this.agent);
    return `api/v2/ws/${encodeURIComponent(this.sessionId)}?${query}`;
  }

  /** What was on its way when the link broke may never have arrived. */
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
    const { view } = this.now;
    const before = view.seq < (this.history ?? 0) ? this.folded : view;
    this.sender.seen(before, this.folded, this.skew ?? 0);
    const newest = this.folded.runs[this.folded.runs.length - 1];
    const isLive = this.now.loading === null && newest !== undefined && newest.endedAt === null;
    // The smallest difference is the one with the least delay in it.
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
    // Ours came through before the link broke, and was sent again for nothing.
    const isOurs = code === "already_decided" && [...this.decisions.values()].some((one) => one.isRepeated);
    this.decisions.clear();
    this.change({ deciding: new Set(), ...(isOurs ? {} : { notice: message }) });
  }

  /**
   * Our place is not in the log: the session is gone, or another has its name and nothing of what we have is true.
   * Only in the second case we connect again, because connecting would bring a deleted session back to life.
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

/** Whether the approval is still open. */
function waitsFor(run: RunView | undefined, approvalId: string): boolean {
  if (run === undefined || run.endedAt !== null) return false;
  const isAsked = (item: Item) => item.kind === "approval" && item.approvalId === approvalId && item.decision === null;
  return run.items.some(isAsked);
}
