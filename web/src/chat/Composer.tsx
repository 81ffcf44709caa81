import { ArrowUp, ChevronDown, Square } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useEffect, useId, useLayoutEffect, useRef, useState } from "react";
import { readStored, writeStored } from "../client/browserStorage";
import type { AgentForm } from "../form/AgentForm";
import type { RunValues } from "../form/agentFields";
import { Button } from "../ui/Button";
import { Menu, MenuItem } from "../ui/Menu";
import type { ShortcutInfo } from "../ui/useShortcuts";
import "./composer.css";

interface Props {
  /** The session that the draft belongs to; null for a new session. */
  readonly sessionId: string | null;
  readonly isBusy?: boolean;
  readonly isDisabled?: boolean;
  /** Whether a message can be sent now. Until then, a message that the user sends waits in the field. */
  readonly isReady?: boolean;
  /** The message that ↑ puts back into the field, or a function that fetches it. */
  readonly last?: string | (() => Promise<string>);
  /** Whether Esc was pressed once, so that a second press stops the agent. */
  readonly confirmsStop?: boolean;
  /** The form of the agent. If the agent takes no question, only the form is shown. */
  readonly form?: AgentForm;
  readonly children?: ReactNode;
  onSend(text: string, ifBusy: "wait" | "cancel", values: RunValues): void;
  onStop?(): void;
}

/** The keys that the field handles in `onKeyDown`, for the list of shortcuts. */
export const COMPOSER_SHORTCUTS: readonly ShortcutInfo[] = [
  { keys: "enter", title: "Send, or queue while the agent works", group: "While you write" },
  { keys: "mod+enter", title: "Interrupt the agent and send", group: "While you write" },
  { keys: "shift+enter", title: "New line", group: "While you write" },
  { keys: "up", title: "Bring back your last message", group: "While you write" },
];

/** The field for messages. While the agent works, a message is queued or interrupts it. */
export function Composer(props: Props) {
  const { sessionId, isBusy = false, isDisabled = false, isReady = true, last = "", form, onSend } = props;
  const takesQuestion = form?.takesQuestion ?? true;
  const [text, setText] = useDraft(sessionId);
  const field = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  const [loadError, setLoadError] = useState("");
  const [waiting, setWaiting] = useState<"wait" | "cancel" | null>(null);
  useAutoHeight(field, text);
  useEffect(() => field.current?.focus({ preventScroll: true }), []);

  const send = (ifBusy: "wait" | "cancel") => {
    if ((takesQuestion && text.trim() === "") || isDisabled) return;
    setWaiting(isReady ? null : ifBusy);
    field.current?.focus();
    if (!isReady) return;
    const values = form === undefined ? {} : form.collect();
    if (values === null) return;
    onSend(takesQuestion ? text.trim() : "", ifBusy, values);
    if (takesQuestion) setText("");
    form?.clear();
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: sends the waiting message once, when it can be sent
  useEffect(() => {
    if (isReady && waiting !== null) send(waiting);
  }, [isReady]);
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      send(event.ctrlKey || event.metaKey ? "cancel" : "wait");
    } else if (event.key === "ArrowUp" && text === "" && last !== "") {
      event.preventDefault();
      if (typeof last === "string") setText(last);
      else
        last().then(
          // Does not overwrite text that the user typed while the message was fetched.
          (message) => field.current?.value === "" && setText(message),
          () => setLoadError("The last message could not be read"),
        );
    }
  };
  return (
    <div className="composer">
      {form?.element}
      {takesQuestion && (
        <>
          <label className="visually-hidden" htmlFor={id}>
            Message
          </label>
          <textarea
            id={id}
            ref={field}
            className="composer-text"
            value={text}
            rows={1}
            dir="auto"
            placeholder={loadError || (isBusy ? "Write to the agent while it works …" : "Ask …")}
            onChange={(event) => {
              setText(event.target.value);
              setLoadError("");
              setWaiting(null);
            }}
            onKeyDown={onKeyDown}
          />
        </>
      )}
      <div className="composer-bar">
        <div className="composer-extra">{props.children}</div>
        {props.confirmsStop && (
          <span className="composer-hint" role="status">
            Press Esc again to stop the agent
          </span>
        )}
        {waiting !== null && (
          <span className="composer-hint" role="status">
            Sent as soon as the page is ready
          </span>
        )}
        {isBusy && props.onStop && (
          <Button className="composer-stop" onClick={props.onStop}>
            <Square size={12} fill="currentColor" aria-hidden="true" /> Stop
          </Button>
        )}
        <SendButton isBusy={isBusy} isDisabled={isDisabled || (takesQuestion && text.trim() === "")} onSend={send} />
      </div>
    </div>
  );
}

function SendButton(props: { isBusy: boolean; isDisabled: boolean; onSend(ifBusy: "wait" | "cancel"): void }) {
  const { isBusy, isDisabled, onSend } = props;
  return (
    <span className="send">
      <Button
        variant="main"
        disabled={isDisabled}
        aria-label={isBusy ? "Queue" : "Send"}
        onClick={() => onSend("wait")}
      >
        {isBusy ? "Queue" : <ArrowUp size={16} aria-hidden="true" />}
      </Button>
      {isBusy && (
        <Menu
          label="How to send"
          align="end"
          side="top"
          trigger={
            <Button variant="main" disabled={isDisabled} aria-label="How to send">
              <ChevronDown size={14} aria-hidden="true" />
            </Button>
          }
        >
          <MenuItem hint="Enter" onSelect={() => onSend("wait")}>
            Queue: when the agent is done
          </MenuItem>
          <MenuItem hint="Ctrl Enter" onSelect={() => onSend("cancel")}>
            Interrupt: stop the agent and ask this
          </MenuItem>
        </Menu>
      )}
    </span>
  );
}

/** The unsent text of a session, stored in the browser. */
function useDraft(sessionId: string | null): [string, (text: string) => void] {
  const key = `draft.${sessionId ?? "new"}`;
  const [text, setText] = useState(() => readStored(key, ""));
  useEffect(() => {
    const timer = setTimeout(() => writeStored(key, text === "" ? null : text), 300);
    return () => clearTimeout(timer);
  }, [key, text]);
  const change = (next: string) => {
    if (next === "") writeStored(key, null);
    setText(next);
  };
  return [text, change];
}

/** Whether the browser grows a field by CSS (`field-sizing`), which is cheaper than measuring its height. */
const HAS_FIELD_SIZING = typeof CSS !== "undefined" && CSS.supports?.("field-sizing", "content");

/** Makes a field as high as its text, up to a third of the window. */
function useAutoHeight(field: React.RefObject<HTMLTextAreaElement | null>, text: string): void {
  // biome-ignore lint/correctness/useExhaustiveDependencies: its height follows the text
  useLayoutEffect(() => {
    const element = field.current;
    if (element === null || HAS_FIELD_SIZING) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, window.innerHeight / 3)}px`;
  }, [field, text]);
}
