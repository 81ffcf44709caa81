import { PauseCircle } from "lucide-react";
import { memo, useEffect, useId, useMemo, useState } from "react";
import { api, errorMessage } from "../client/api";
import { FormFields } from "../form/FormFields";
import {
  collect,
  type Draft,
  defaultDraft,
  type FilledForm,
  type FormErrors,
  type FormField,
  filledForm,
  formFields,
} from "../form/schemaFields";
import { formatBytes, formatDuration, valueText } from "../log/displayText";
import type { ApprovalItem, Args, RunView } from "../log/viewModel";
import { escapeBidi, escapeInvisible } from "../text/invisibleCharacters";
import { Button } from "../ui/Button";
import { useNow } from "../ui/clock";
import type { JsonObject, JsonValue } from "../wire/events";
import { NO_DRAFT, useChat, useDecisionDraft } from "./chatContext";
import { splitArguments, ToolArguments } from "./ToolArguments";
import "./approval.css";

/** The name of a request that is a question of a LangGraph graph, not about a tool. */
const GRAPH_QUESTION = "interrupt";
const EDIT_LABEL = "Approve with changes";
const CHARS_PER_ROW = 80;
const MIN_ROWS = 8;
const MAX_ROWS = 30;

/** A card that asks the user to approve, edit or reject a tool call, or to answer a question. */
export const Approval = memo(function Approval({ run, approval }: { run: RunView; approval: ApprovalItem }) {
  const { store, deciding } = useChat();
  const [draft, change] = useDecisionDraft(approval.approvalId);
  const { mode } = draft;
  const fullArgs = useFullArgs(run, approval);
  const cancel = () => change(NO_DRAFT);
  const isSent = deciding.has(approval.approvalId);
  const isAllowed = (decision: "approve" | "edit" | "reject") => approval.decisions.includes(decision);
  const agent = run.agents.get(approval.agentId);
  const title = approvalTitle(approval);
  const isAnswering = isQuestion(approval) && mode === "ask";
  return (
    <section className="approval" aria-label={title} data-item={approval.key}>
      <header className="approval-head">
        <PauseCircle size={16} aria-hidden="true" />
        <strong>{title}</strong>
        {agent !== undefined && agent.agentId !== "" && (
          <span className="quiet">asked by {escapeInvisible(agent.name)}</span>
        )}
        <Expiry approval={approval} />
      </header>
      {mode === "edit" && draft.editedForm !== null ? (
        <EditArgsForm
          form={draft.editedForm}
          isSent={isSent}
          onChange={(editedForm) => change({ editedForm })}
          onCancel={cancel}
          onSend={(edited) => store.decide(approval, "edit", { args: edited })}
        />
      ) : mode === "edit" ? (
        <EditArgs
          text={draft.edited}
          isSent={isSent}
          onChange={(edited) => change({ edited })}
          onCancel={cancel}
          onSend={(edited) => store.decide(approval, "edit", { args: edited })}
        />
      ) : (
        <>
          {approval.question !== "" && <p className="approval-question">{escapeBidi(approval.question)}</p>}
          <ApprovalArgs approval={approval} fullArgs={fullArgs} />
          {approval.answerSchema !== null && (isAnswering || mode === "answer") && (
            <AnswerForm
              schema={approval.answerSchema}
              draft={draft.answer}
              isSent={isSent}
              onChange={(answer) => change({ answer })}
              onCancel={isAnswering ? null : cancel}
              onSend={(answer) => store.decide(approval, "respond", { answer })}
            />
          )}
          {mode === "reject" ? (
            <RejectReason
              reason={draft.reason}
              isSent={isSent}
              onChange={(reason) => change({ reason })}
              onCancel={cancel}
              onSend={(reason) => store.decide(approval, "reject", { reason })}
            />
          ) : mode === "answer" ? null : (
            <div className="approval-buttons">
              {isAllowed("approve") && (
                <Button
                  variant={isAnswering ? "plain" : "main"}
                  disabled={isSent}
                  onClick={() => store.decide(approval, "approve")}
                >
                  Approve
                </Button>
              )}
              {isAllowed("edit") && (
                <Button
                  disabled={isSent || fullArgs.state !== "complete"}
                  onClick={() =>
                    change({
                      mode: "edit",
                      edited: valueText(fullArgs.args),
                      editedForm: formOfArgs(approval.argsSchema, fullArgs.args),
                    })
                  }
                >
                  Edit
                </Button>
              )}
              {approval.answerSchema !== null && !isQuestion(approval) && (
                <Button disabled={isSent} onClick={() => change({ mode: "answer" })}>
                  Answer
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

/** Whether an answer is what the agent waits for. An action can also be answered, but is first of all to be approved. */
function isQuestion({ name, answerSchema, decisions }: ApprovalItem): boolean {
  return answerSchema !== null && (name === GRAPH_QUESTION || !decisions.includes("approve"));
}

/** The title of the card: what to approve, or that there is a question. */
function approvalTitle(approval: ApprovalItem): string {
  const name = escapeInvisible(approval.name);
  if (!isQuestion(approval)) return `Approve ${name}?`;
  return approval.name === GRAPH_QUESTION ? "The agent asks a question" : `Answer ${name}?`;
}

interface AnswerProps {
  readonly schema: JsonObject;
  /** What the user has filled in; null before the first change. */
  readonly draft: Draft | null;
  readonly isSent: boolean;
  /** Hides the form; null if it is always shown. */
  readonly onCancel: (() => void) | null;
  onChange(draft: Draft): void;
  onSend(answer: JsonValue): void;
}

/** The form with which the user answers a question. */
function AnswerForm({ schema, draft, onSend, ...rest }: AnswerProps) {
  const fields = useMemo(() => formFields(schema), [schema]);
  return (
    <DecisionForm
      {...rest}
      fields={fields}
      draft={draft ?? defaultDraft(fields)}
      submitLabel="Send answer"
      onSend={(values) => onSend(fields[0]?.name === "" ? (values[""] ?? null) : values)}
    />
  );
}

interface EditFormProps {
  readonly form: FilledForm;
  readonly isSent: boolean;
  onChange(form: FilledForm): void;
  onCancel(): void;
  onSend(args: JsonObject): void;
}

/** The form with which the user edits arguments whose schema is known. */
function EditArgsForm({ form, onChange, ...rest }: EditFormProps) {
  return (
    <DecisionForm {...rest} {...form} submitLabel={EDIT_LABEL} onChange={(draft) => onChange({ ...form, draft })} />
  );
}

/** Returns the form of arguments; null if they have to be edited as JSON. */
function formOfArgs(schema: JsonObject | null, args: Args | null): FilledForm | null {
  return schema === null || args === null || typeof args === "string" ? null : filledForm(schema, args);
}

interface DecisionFormProps {
  readonly fields: readonly FormField[];
  readonly draft: Draft;
  readonly isSent: boolean;
  readonly submitLabel: string;
  readonly onCancel: (() => void) | null;
  onChange(draft: Draft): void;
  onSend(values: JsonObject): void;
}

/** Fields with their buttons, which sends only values without mistakes. */
function DecisionForm({ fields, draft, isSent, submitLabel, onCancel, onChange, onSend }: DecisionFormProps) {
  const [errors, setErrors] = useState<FormErrors>({});
  return (
    <form
      className="approval-form"
      onSubmit={(event) => {
        event.preventDefault();
        const { values, errors: found } = collect(fields, draft, { isComplete: true, allowsEmpty: true });
        setErrors(found);
        if (Object.keys(found).length === 0) onSend(values);
      }}
    >
      <FormFields
        fields={fields}
        draft={draft}
        errors={errors}
        singleLabel="Your answer"
        onChange={(next) => {
          setErrors({});
          onChange(next);
        }}
      />
      <div className="approval-buttons">
        <Button variant="main" type="submit" disabled={isSent}>
          {submitLabel}
        </Button>
        {onCancel !== null && (
          <Button variant="quiet" onClick={onCancel}>
            Cancel
          </Button>
        )}
      </div>
    </form>
  );
}

interface FullArgs {
  readonly args: Args;
  readonly state: "complete" | "loading" | "failed";
  retry(): void;
}

/** Returns the complete arguments of an approval, which it fetches if the log truncates them. */
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
    () => splitArguments({ ...approval, args: withoutQuestion(approval, fullArgs.args), argsText: "" }),
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

/** Returns the arguments without what the card shows elsewhere: the question, and the list of its choices. */
function withoutQuestion({ question, answerSchema }: ApprovalItem, args: Args): Args {
  if (answerSchema === null || args === null || typeof args === "string") return args;
  const choices = formFields(answerSchema).map((field) => JSON.stringify(field.choices.map(({ value }) => value)));
  const shown = new Set([...choices, JSON.stringify(answerSchema)]);
  const isShown = (value: JsonValue) =>
    typeof value === "string" ? value.trim() === question : shown.has(JSON.stringify(value));
  return Object.fromEntries(Object.entries(args).filter(([, value]) => !isShown(value)));
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
          {EDIT_LABEL}
        </Button>
        <Button variant="quiet" onClick={onCancel}>
          Cancel
        </Button>
      </div>
    </>
  );
}

/** Returns the height in rows of the field that edits a JSON text, with an estimate for lines that wrap. */
function editorRows(text: string): number {
  const rows = text.split("\n").reduce((sum, line) => sum + Math.max(1, Math.ceil(line.length / CHARS_PER_ROW)), 1);
  return Math.min(MAX_ROWS, Math.max(MIN_ROWS, rows));
}

/** Parses JSON arguments. Returns the object, or an error message if the text is not a JSON object. */
function parseArgs(text: string): JsonObject | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
    return 'Arguments are a JSON object, like {"path": "report.md"}.';
  } catch (error) {
    return `This is not valid JSON: ${errorMessage(error)}`;
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
        placeholder="Reason, which the agent reads (optional)"
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

/** A line that says what an approval request was about: the question of a graph, or the tool. */
export function approvalSummary({ name, question }: ApprovalItem): string {
  return name === GRAPH_QUESTION && question !== ""
    ? `Asked: ${escapeBidi(question)}`
    : `Asked for ${escapeInvisible(name)}`;
}

/** Returns an answer that is a text; null if it is another value. */
function textAnswer(args: Args | null): string | null {
  const answer = args !== null && typeof args === "object" ? args.value : null;
  return typeof answer === "string" ? answer : null;
}

/** Returns an answer as arguments, so that it is shown like them. */
function answerArgs(args: Args | null): Args | null {
  if (args === null || typeof args === "string") return args;
  const answer = args.value ?? null;
  return typeof answer === "object" && answer !== null && !Array.isArray(answer) ? (answer as JsonObject) : { answer };
}

const DECISION_LABELS = { approve: "Approved", edit: "Approved with changes", reject: "Rejected" };

/** A line with the decision of an approval, who decided and when, and the edited arguments. */
export function DecisionLine({ approval }: { approval: ApprovalItem }) {
  if (approval.decision === null) return <p className="decided">Waits for a decision.</p>;
  const by = approval.by === "" ? "" : ` by ${approval.by}`;
  const when = approval.decidedAt === null ? "" : ` at ${new Date(approval.decidedAt).toLocaleTimeString()}`;
  const editedArgs = approval.answered ? answerArgs(approval.editedArgs) : approval.editedArgs;
  const text = approval.answered ? textAnswer(approval.editedArgs) : null;
  return (
    <>
      <p className="decided" data-decision={approval.decision}>
        {approval.answered ? "Answered" : DECISION_LABELS[approval.decision]}
        {by}
        {when}
        {approval.reason !== "" && `: ${escapeBidi(approval.reason)}`}
      </p>
      {text !== null && <p className="approval-question">{escapeBidi(text)}</p>}
      {text === null && editedArgs !== null && (
        <ToolArguments parts={splitArguments({ ...approval, args: editedArgs, argsText: "" })} />
      )}
    </>
  );
}
