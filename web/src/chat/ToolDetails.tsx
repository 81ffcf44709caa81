import { type ReactNode, useMemo, useState } from "react";
import { formatBytes, valueText } from "../log/format";
import type { RunView, ToolItem } from "../log/view";
import { ToolOutput } from "../text/AnsiText";
import { JsonView } from "../text/JsonView";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { ApiError, api, type ToolCall } from "../wire/api";
import { DecisionLine } from "./Approval";
import { Arguments, splitArguments } from "./Arguments";
import { LoadFullButton } from "./LoadFullButton";

const ERROR_PREFIX = "Error: ";

/**
 * The full error text from a call's result, because the log truncates errors at 2,000 characters. Null if the result
 * is not the error.
 */
export function findErrorText(result: string, error: string): string | null {
  const prefix = error.endsWith("…") ? error.slice(0, -1) : error;
  for (const errorText of [result.startsWith(ERROR_PREFIX) ? result.slice(ERROR_PREFIX.length) : result, result])
    if (errorText.startsWith(prefix)) return errorText;
  return null;
}

const PREVIEW = 1200;
const NO_RESULT_SEEN = "No result seen: the run ended without showing what became of this call.";

/** Arguments, output and result of a call: previews first, the rest on a click. */
export function ToolDetails({ run, tool }: { run: RunView; tool: ToolItem }) {
  const [full, setFull] = useState<ToolCall | null>(null);
  const [loadError, setLoadError] = useState<string | null>(null);
  const [showsAll, setShowsAll] = useState(false);
  const showAll = async () => {
    setShowsAll(true);
    setLoadError(null);
    if (full !== null || (tool.resultTruncation === null && tool.outputDropped === 0)) return;
    try {
      setFull(await api.toolCall(run.runId, tool.callId));
    } catch (error) {
      setShowsAll(false);
      setLoadError(error instanceof ApiError ? error.message : "The whole result could not be read.");
    }
  };
  // The full values are copied, also while only previews are shown.
  const fetched = () => api.toolCall(run.runId, tool.callId);
  const result = valueText(full?.result ?? tool.result);
  const output = full?.output ?? tool.output.map((piece) => piece.text).join("");
  const failed = tool.error === null || tool.state === "stopped" ? null : tool.error;
  const errorText = failed === null ? null : findErrorText(result, failed);
  const error = errorText ?? failed;
  const hasResult =
    tool.endedAt !== null && (tool.error === null || (failed !== null && errorText === null && result !== ""));
  const isTruncated =
    tool.resultTruncation !== null ||
    tool.outputDropped > 0 ||
    [output, error ?? "", hasResult ? result : ""].some((text) => text.length > PREVIEW);
  const shown = (text: string) => (showsAll || text.length <= PREVIEW ? text : `${text.slice(0, PREVIEW)}…`);
  const approval = tool.approval === null ? undefined : run.items[tool.approval];
  /** The text to copy, which is fetched first if it is truncated. */
  const all = (text: string, of: (call: ToolCall) => string) =>
    tool.resultTruncation !== null && full === null ? async () => of(await fetched()) : text;
  return (
    <>
      {approval?.kind === "approval" && <DecisionLine approval={approval} />}
      <ToolArguments run={run} tool={tool} />
      {output !== "" && (
        <Part
          title="Output"
          text={output}
          copy={tool.outputDropped > 0 && full === null ? async () => (await fetched()).output : output}
        >
          <ToolOutput text={output} isPreview={!showsAll} isTruncated={tool.outputDropped > 0 && full === null} />
        </Part>
      )}
      {failed !== null && error !== null && (
        <Part
          title="Error"
          text={error}
          copy={
            errorText === null
              ? failed
              : all(errorText, (call) => findErrorText(valueText(call.result), failed) ?? failed)
          }
        >
          <div className="tool-error" role="note">
            <JsonView value={shown(error)} isText />
          </div>
        </Part>
      )}
      {hasResult && (
        <Part
          title="Result"
          text={tool.state === "unseen" ? "" : result}
          copy={all(result, (call) => valueText(call.result))}
          empty={tool.state === "unseen" ? NO_RESULT_SEEN : "It returned nothing."}
        >
          {result !== "" && <JsonView value={showsAll ? (full?.result ?? tool.result) : shown(result)} />}
        </Part>
      )}
      {isTruncated && !showsAll && (
        <Button onClick={showAll}>
          Show whole {errorText === null ? "result" : "error"}
          {tool.resultTruncation === null ? "" : ` (${formatBytes(tool.resultTruncation.size)})`}
        </Button>
      )}
      {loadError !== null && (
        <p className="tool-error" role="alert">
          {loadError}
        </p>
      )}
    </>
  );
}

function ToolArguments({ run, tool }: { run: RunView; tool: ToolItem }) {
  const [full, setFull] = useState<ToolCall | null>(null);
  const args = full?.args ?? tool.args;
  const parts = useMemo(() => splitArguments({ ...tool, args }), [tool, args]);
  const load = () => api.toolCall(run.runId, tool.callId);
  const isTruncated = tool.argsTruncation !== null && full === null;
  const copy = isTruncated ? async () => valueText((await load()).args ?? "") : valueText(args ?? tool.argsText);
  return (
    <>
      <Arguments parts={parts} head={<PartHead title="Arguments" copy={copy} />} />
      {isTruncated && (
        <LoadFullButton what="whole arguments" size={tool.argsTruncation?.size ?? 0} load={load} onLoaded={setFull} />
      )}
    </>
  );
}

function PartHead({ title, copy }: { title: string; copy: string | (() => Promise<string>) }) {
  return (
    <header className="part-head">
      <span>{title}</span>
      {copy !== "" && <CopyButton text={copy} label={`Copy ${title.toLowerCase()}`} />}
    </header>
  );
}

interface PartProps {
  readonly title: string;
  readonly text: string;
  readonly copy: string | (() => Promise<string>);
  readonly empty?: string;
  readonly children: ReactNode;
}

function Part({ title, text, copy, empty, children }: PartProps) {
  return (
    <section className="part">
      <PartHead title={title} copy={text === "" ? "" : copy} />
      {text === "" && empty !== undefined ? <p className="quiet">{empty}</p> : children}
    </section>
  );
}
