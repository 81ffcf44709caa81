/** A fake WebSocket. Tests open it, feed it messages and close it. */
export class FakeSocket {
  static all: FakeSocket[] = [];
  static readonly CONNECTING = 0;
  static readonly OPEN = 1;
  readyState = 0;
  sent: Record<string, unknown>[] = [];
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: string }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;

  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }
  send(text: string) {
    this.sent.push(JSON.parse(text) as Record<string, unknown>);
  }
  close() {
    this.readyState = 3;
  }
  open(cursor = 0, state = "idle") {
    this.readyState = 1;
    this.onopen?.();
    const info = { session_id: "s", agent_type: "demo", state, title: "", run_id: null, cursor: String(cursor) };
    this.receive({ type: "state", state: info });
  }
  receive(frame: object) {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  drop(code = 1006, reason = "") {
    this.readyState = 3;
    this.onclose?.({ code, reason });
  }
}

export const newestSocket = () => {
  const socket = FakeSocket.all[FakeSocket.all.length - 1];
  if (socket === undefined) throw new Error("no socket was opened");
  return socket;
};
