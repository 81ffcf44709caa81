/**
 * The store of an open session: it reduces the socket's frames to one immutable value and sends the user's actions.
 *
 * Records are collected and reduced a few times a second, long logs in slices, so that the page stays responsive.
 * After a reconnect the log continues at the last known record.
 */

import type { RunValues } from "../form/agentFields";
import { addGap, reduce } from "../log/reduce";
import { type ApprovalItem, type Args, EMPTY, isRunning, type RunView, type SessionView } from "../log/viewModel";
import type { JsonValue, LogRecord, RequestedDecision } from "../wire/events";
import { type Frame, parseFrame, type SessionInfo } from "../wire/socketFrames";
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
  /** Fraction of the log that is loaded, 0 to 1; null when all of it is loaded. */
  readonly loading: number | null;
  readonly pending: readonly OutboxMessage[];
  /** Ids of approvals whose decision is being sent. */
  readonly deciding: ReadonlySet<string>;
  /** A message for the user, e.g. the server's error after an action of the user. */
  readonly notice: string | null;
  /** How far this machine's clock is ahead of the server's, in ms. */
  readonly clockSkew: number;
}

const DELETED: SocketStatus = { kind: "ended", why: "deleted", reason: "" };
const REDUCE_INTERVAL_MS = 40;
const SLICE_SIZE = 500;
/** Longest time for which records are reduced without a pause, in ms: less than a frame of the display. */
const REDUCE_MS = 12;
/** Longest time for which records are reduced without a pause in a hidden tab, in ms. */
const HIDDEN_REDUCE_MS = 500;

/** What belongs to a decision: the edited arguments, the reason of a rejection, or the answer. */
interface DecisionDetails {
  readonly args?: Args;
  readonly reason?: string;
  readonly answer?: JsonValue;
}

export class SessionStore extends Store<LiveSession> {
  private readonly socket: ReconnectingSocket;
  private readonly sender: MessageSender;
  private readonly received: LogRecord[] = [];
  private isReduceScheduled = false;
  /** The highest record number (`seq`) of the log that the server has announced. */
  private announcedEnd = 0;
  private reduced: SessionView = EMPTY;
  /** The first value of `announcedEnd`: records up to it existed before the page was opened. */
  private initialEnd: number | null = null;
  private skew: number | null = null;
  private closed = false;
  /** Decisions that the server has not confirmed, by approval id. `isRepeated` after a reconnect. */
  private readonly decisions = new Map<string, { command: object; isRepeated: boolean }>();
  private existenceCheck: AbortController | null = null;

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
      open: () => this.resendAll(),
      message: (text) => this.handleFrame(parseFrame(text)),
      status: (connection) => this.connectionChanged(connection),
    });
  }

  ask(text: string, ifBusy: OutboxMessage["ifBusy"], values: RunValues = {}): void {
    this.sender.ask(text, ifBusy, values);
  }

  /** Withdraws a message whose run has not started. */
  withdraw(one: OutboxMessage): void {
    this.sender.withdraw(one);
  }

  /** Sends a refused message again. */
  retry(one: OutboxMessage): void {
    this.sender.retry(one);
    if (this.state.connection.kind === "ended") this.reconnect();
  }

  stop(): void {
    this.change({ notice: null });
    if (!this.socket.send({ type: "cancel" })) this.change({ notice: "Not connected: the agent was not stopped." });
  }

  decide(asked: ApprovalItem, decision: RequestedDecision, more: DecisionDetails = {}): void {
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
    if (this.existenceCheck !== null) return void this.reloadAfterBadCursor();
    if (this.state.connection.kind !== "ended") return this.socket.reconnectNow();
    // Connecting again would recreate a deleted session.
    if (this.state.connection.why === "deleted") return;
    this.change({ notice: null });
    this.socket.restart();
  }

  close(): void {
    this.closed = true;
    this.sender.close();
    this.existenceCheck?.abort();
    this.socket.close();
  }

  private get state(): LiveSession {
    return this.getSnapshot();
  }

  private change(part: Partial<LiveSession>): void {
    this.set({ ...this.state, ...part });
  }

  private connectionChanged(connection: SocketStatus): void {
    this.change({ connection });
    if (connection.kind !== "ended" || this.existenceCheck !== null) return;
    // The server accepts no more messages: mark the unsent ones as refused, so that the user can reuse them.
    const reason = this.state.notice ?? connection.reason;
    for (const one of this.sender.pending) if (one.error === null) this.sender.refused(one.requestId, reason, "");
  }

  private path(): string {
    const query = new URLSearchParams({ format: "records", packed: "1", after: String(this.reduced.seq) });
    if (this.agent !== null && this.reduced.seq === 0) query.set("agent_type", this.agent);
    return `api/v2/ws/${encodeURIComponent(this.sessionId)}?${query}`;
  }

  /** Sends messages and decisions again that may not have arrived before the connection was lost. */
  private resendAll(): void {
    this.received.length = 0;
    this.sender.sendAllAgain();
    for (const [id, { command }] of this.decisions) {
      this.socket.send(command);
      this.decisions.set(id, { command, isRepeated: true });
    }
  }

  private handleFrame(frame: Frame): void {
    switch (frame.type) {
      case "records":
        this.received.push(...frame.records);
        return this.scheduleReduce();
      case "gap":
        this.reduceAll();
        this.reduced = addGap(this.reduced, frame.gap);
        return this.scheduleReduce();
      case "state":
        this.socket.accepted();
        this.announcedEnd = Math.max(this.announcedEnd, Number(frame.state.cursor));
        this.initialEnd ??= this.announcedEnd;
        this.change({ info: frame.state, loading: this.progress() });
        return;
      case "accepted":
        return this.accepted(frame.request_id, frame.run_id);
      case "decided":
        return this.decisionConfirmed(frame.approval_id);
      case "error":
        return this.refused(frame);
      default:
    }
  }

  private progress(): number | null {
    return this.reduced.seq >= this.announcedEnd ? null : this.reduced.seq / Math.max(1, this.announcedEnd);
  }

  private scheduleReduce(): void {
    if (this.isReduceScheduled) return;
    this.isReduceScheduled = true;
    setTimeout(() => this.reduceAndPublish(), this.state.loading === null ? REDUCE_INTERVAL_MS : 0);
  }

  /** Reduces records for a limited time and publishes the view. Schedules itself again if records are left. */
  private reduceAndPublish(): void {
    this.isReduceScheduled = false;
    if (this.closed) return;
    this.reduceFor(document.hidden ? HIDDEN_REDUCE_MS : REDUCE_MS);
    const loading = this.progress();
    if (loading === null || this.state.loading === null) this.publish();
    else this.change({ loading });
    if (this.received.length > 0) this.scheduleReduce();
  }

  private reduceFor(ms: number): void {
    const end = performance.now() + ms;
    let from = 0;
    do {
      this.reduced = reduce(this.reduced, this.received.slice(from, from + SLICE_SIZE));
      from += SLICE_SIZE;
    } while (from < this.received.length && performance.now() < end);
    this.received.splice(0, from);
  }

  private reduceAll(): void {
    this.reduced = reduce(this.reduced, this.received.splice(0));
  }

  private publish(): void {
    const { view } = this.state;
    const before = view.seq < (this.initialEnd ?? 0) ? this.reduced : view;
    this.sender.removeStarted(before, this.reduced, this.skew ?? 0);
    const newest = this.reduced.runs.at(-1);
    // The difference of the clocks includes the network delay, so the smallest measured value is the most exact one.
    if (this.state.loading === null && isRunning(newest))
      this.skew = Math.min(this.skew ?? Number.POSITIVE_INFINITY, Date.now() - newest.lastAt);
    const clockSkew = this.skew ?? 0;
    for (const id of this.decisions.keys()) if (!isApprovalOpen(newest, id)) this.decisions.delete(id);
    const isSame = this.decisions.size === this.state.deciding.size;
    const deciding = isSame ? this.state.deciding : new Set(this.decisions.keys());
    this.change({ view: this.reduced, loading: this.progress(), clockSkew, deciding });
  }

  private accepted(requestId: string, runId: string): void {
    const known = this.state.view.runs.some((run) => run.runId === runId);
    this.sender.accepted(requestId, runId, known);
  }

  private decisionConfirmed(approvalId: string): void {
    this.decisions.delete(approvalId);
    this.change({ deciding: new Set(this.decisions.keys()) });
  }

  private refused({ message, error_code: code, request_id, retry_after }: Extract<Frame, { type: "error" }>): void {
    if (request_id !== undefined) return this.sender.refused(request_id, message, code);
    if (code === "bad_cursor") return void this.reloadAfterBadCursor();
    if (this.socket.noteRefusal(code, message, retry_after ?? 0)) return;
    // The error answers a decision that was sent again, although the first one had arrived before the connection was
    // lost.
    const isRedundant = code === "already_decided" && [...this.decisions.values()].some((one) => one.isRepeated);
    this.decisions.clear();
    this.change({ deciding: new Set(), ...(isRedundant ? {} : { notice: message }) });
  }

  /**
   * Handles a cursor that is not in the log: the session was deleted, or a new one has the same id. Loads the new one,
   * but does not connect to a deleted session, because connecting would recreate it.
   */
  private async reloadAfterBadCursor(): Promise<void> {
    this.existenceCheck?.abort();
    const existenceCheck = new AbortController();
    this.existenceCheck = existenceCheck;
    const since = this.state.connection.kind === "lost" ? this.state.connection.since : Date.now();
    const waiting = (ms: number) => this.change({ connection: { kind: "lost", since, next: Date.now() + ms } });
    const isThere = await sessionExists(this.sessionId, existenceCheck.signal, waiting).catch(() => null);
    if (isThere === null || existenceCheck.signal.aborted) return;
    this.existenceCheck = null;
    if (!isThere) return this.change({ connection: DELETED });
    this.received.length = 0;
    this.reduced = EMPTY;
    this.announcedEnd = 0;
    this.initialEnd = null;
    this.change({ view: EMPTY, loading: 0 });
    this.socket.restart();
  }
}

/** Whether an approval of the run waits for its decision. */
function isApprovalOpen(run: RunView | undefined, approvalId: string): boolean {
  return isRunning(run) && run.open.has(`approval ${approvalId}`);
}
