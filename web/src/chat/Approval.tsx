import { PauseCircle } from "lucide-react";
import { memo, useEffect, useId, useMemo, useState } from "react";
import { api, errorMessage } from "../client/api";
import { formatBytes, formatDuration, valueText } from "../log/format";
import type { ApprovalItem, Args, RunView } from "../log/viewModel";
import { escapeBidi, escapeInvisible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { useNow } from "../ui/clock";
import type { JsonObject } from "../wire/events";
import { NO_DRAFT, useChat, useDecisionDraft } from "./chatContext";
import { splitArguments, ToolArguments } from "./ToolArguments";
import "./approval.css";

const LINE = 80;
const FEWEST_ROWS = 8;
const MOST_ROWS = 30;

/** Asks the user to approve, edit or reject a call. */
export const Approval = memo(function Approval({ run, approval }: { run: RunView; approval: ApprovalItem }) {
  const { store, deciding } = useChat();
  const [draft, change] = useDecisionDraft(approval.approvalId);
  const { mode } = draft;
  const fullArgs = useFullArgs(run, approval);
  const cancel = () => change(NO_DRAFT);
  const isSent = deciding.has(approval.approvalId);
  const isAllowed = (decision: "approve" | "edit" | "reject") => approval.decisions.includes(decision);
  const agent = run.agents.get(approval.agentId);
  return (
    <section className="approval" aria-label={`Approve ${escapeInvisible(approval.name)}?`} data-item={approval.key}>
      <header className="approval-head">
        <PauseCircle size={16} aria-hidden="true" />
        <strong>Approve {escapeInvisible(approval.name)}?</strong>
        {agent !== undefined && agent.agentId !== "" && (
          <span className="quiet">asked by {escapeInvisible(agent.name)}</span>
        )}
        <Expiry approval={approval} />
      </header>
      {mode === "edit" ? (
        <EditArgs
          text={draft.edited}
          isSent={isSent}
          onChange={(edited) => change({ edited })}
          onCancel={cancel}
          onSend={(edited) => store.decide(approval, "edit", { args: edited })}
        />
      ) : (
        <>
          <ApprovalArgs approval={approval} fullArgs={fullArgs} />
          {mode === "reject" ? (
            <RejectReason
              reason={draft.reason}
              isSent={isSent}
              onChange={(reason) => change({ reason })}
              onCancel={cancel}
              onSend={(reason) => store.decide(approval, "reject", { reason })}
            />
          ) : (
            <div className="approval-buttons">
              {isAllowed("approve") && (
                <Button variant="main" disabled={isSent} onClick={() => store.decide(approval, "approve")}>
                  Approve
                </Button>
              )}
              {isAllowed("edit") && (
                <Button
                  disabled={isSent || fullArgs.state !== "complete"}
                  onClick={() => change({ mode: "edit", edited: valueText(fullArgs.args) })}
                >
                  Edit
                </Button>
              )}
              {isAllowed("reject") && (
                <Button variant="danger" disabled={isSent} onClick={() => change({ mode: "reject" })}>
                  Reject
                </Button>
              )}
              {isSent && <span className="quiet">Sent …</span>}
            </div>
          )}
        </>
      )}
    </section>
  );
});

interface FullArgs {
  readonly args: Args;
  readonly state: "complete" | "loading" | "failed";
  retry(): void;
}

/** The complete arguments of an approval. Fetches them if the log truncates them. */
function useFullArgs(run: RunView, approval: ApprovalItem): FullArgs {
  const isTruncated = approval.argsTruncation !== null;
  const [current, setCurrent] = useState<Omit<FullArgs, "retry">>({
    args: approval.args,
    state: isTruncated ? "loading" : "complete",
  });
  const [tries, setTries] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: each attempt fetches again
  useEffect(() => {
    if (!isTruncated) return;
    const abort = new AbortController();
    setCurrent((before) => ({ ...before, state: "loading" }));
    api.approval(run.runId, approval.approvalId, abort.signal).then(
      ({ args, truncated }) => setCurrent({ args, state: truncated ? "failed" : "complete" }),
      () => abort.signal.aborted || setCurrent((before) => ({ ...before, state: "failed" })),
    );
    return () => abort.abort();
  }, [run.runId, approval.approvalId, isTruncated, tries]);
  return { ...current, retry: () => setTries(tries + 1) };
}

function ApprovalArgs({ approval, fullArgs }: { approval: ApprovalItem; fullArgs: FullArgs }) {
  const parts = useMemo(
    () => splitArguments({ ...approval, args: fullArgs.args, argsText: "" }),
    [approval, fullArgs.args],
  );
  return (
    <>
      <ToolArguments parts={parts} />
      {fullArgs.state !== "complete" && (
        <p className="approval-cut" role="status">
          Only the beginning is shown, of {formatBytes(approval.argsTruncation?.size ?? 0)}.{" "}
          {fullArgs.state === "loading" ? "Loading the rest …" : "The rest could not be read."}
          {fullArgs.state === "failed" && <Button onClick={fullArgs.retry}>Try again</Button>}
        </p>
      )}
    </>
  );
}

function Expiry({ approval }: { approval: ApprovalItem }) {
  const current = useNow(approval.expiresAt !== null);
  if (approval.expiresAt === null) return null;
  const left = approval.expiresAt - current;
  return <span className="time">{left > 0 ? `${formatDuration(left)} left` : "expired"}</span>;
}

interface EditProps {
  readonly text: string;
  readonly isSent: boolean;
  onChange(text: string): void;
  onCancel(): void;
  onSend(args: JsonObject): void;
}

function EditArgs({ text, isSent, onChange, onCancel, onSend }: EditProps) {
  const [wrong, setWrong] = useState<string | null>(null);
  const id = useId();
  const send = () => {
    const parsed = parseArgs(text);
    if (typeof parsed === "string") setWrong(parsed);
    else onSend(parsed);
  };
  return (
    <>
      <label className="visually-hidden" htmlFor={id}>
        New arguments as JSON
      </label>
      <textarea
        id={id}
        className="approval-editor"
        value={text}
        rows={editorRows(text)}
        spellCheck={false}
        onChange={(event) => {
          onChange(event.target.value);
          setWrong(null);
        }}
      />
      {wrong !== null && (
        <p className="tool-error" role="alert">
          {wrong}
        </p>
      )}
      <div className="approval-buttons">
        <Button variant="main" disabled={isSent} onClick={send}>
          Approve with changes
        </Button>
        <Button variant="quiet" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </>
  );
}

/** The number of rows of the field for a JSON text, with an estimate for lines that wrap. */
function editorRows(text: string): number {
  const rows = text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / LINE)), 1);
  return Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, rows));
}

/** Parses JSON arguments. Returns the object, or an error message if the text is not a JSON object. */
function parseArgs(text: string): JsonObject | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
    return 'Arguments are a JSON object, like {"path": "report.md"}.';
  } catch (error) {
    return `This is no valid JSON: ${errorMessage(error)}`;
  }
}

interface RejectProps {
  readonly reason: string;
  readonly isSent: boolean;
  onChange(reason: string): void;
  onCancel(): void;
  onSend(reason: string): void;
}

function RejectReason({ reason, ...props }: RejectProps) {
  const id = useId();
  return (
    <form
      className="approval-buttons"
      onSubmit={(event) => {
        event.preventDefault();
        props.onSend(reason.trim());
      }}
    >
      <label className="visually-hidden" htmlFor={id}>
        Why not (the agent reads it)
      </label>
      <input
        id={id}
        className="approval-reason"
        placeholder="Why not? The agent reads it (may be left out)"
        value={reason}
        maxLength={500}
        dir="auto"
        onChange={(event) => props.onChange(event.target.value)}
      />
      <Button variant="danger" type="submit" disabled={props.isSent}>
        Reject
      </Button>
      <Button variant="quiet" onClick={props.onCancel}>
        Cancel
      </Button>
    </form>
  );
}

const WORDS = { approve: "Approved", edit: "Approved with changes", reject: "Rejected" };

/** The decision of an approval, who decided and when, and the edited arguments. */
export function DecisionLine({ approval }: { approval: ApprovalItem }) {
  if (approval.decision === null) return <p className="decided">Waits for a decision.</p>;
  const by = approval.by === "" ? "" : ` by ${approval.by}`;
  const when = approval.decidedAt === null ? "" : ` at ${new Date(approval.decidedAt).toLocaleTimeString()}`;
  const { editedArgs } = approval;
  return (
    <>
      <p className="decided" data-decision={approval.decision}>
        {WORDS[approval.decision]}
        {by}
        {when}
        {approval.reason !== "" && `: ${escapeBidi(approval.reason)}`}
      </p>
      {editedArgs !== null && <ToolArguments parts={splitArguments({ ...approval, args: editedArgs, argsText: "" })} />}
    </>
  );
}
