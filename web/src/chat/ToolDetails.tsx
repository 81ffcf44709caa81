import { type ReactNode, useMemo, useState } from "react";
import { api, type ToolCall } from "../client/api";
import { valueText } from "../log/displayText";
import type { RunView, ToolItem } from "../log/viewModel";
import { ToolOutput } from "../text/AnsiText";
import { JsonView } from "../text/JsonView";
import { CopyButton } from "../ui/CopyButton";
import { DecisionLine } from "./Approval";
import { LoadCompleteButton } from "./LoadCompleteButton";
import { splitArguments, ToolArguments } from "./ToolArguments";

const ERROR_PREFIX = "Error: ";

/**
 * Finds the complete text of an error in the call's result, because the log truncates errors at 2,000 characters. Null if
 * the result is not the error.
 */
export function findErrorText(result: string, error: string): string | null {
  const prefix = error.endsWith("…") ? error.slice(0, -1) : error;
  for (const errorText of [result.startsWith(ERROR_PREFIX) ? result.slice(ERROR_PREFIX.length) : result, result])
    if (errorText.startsWith(prefix)) return errorText;
  return null;
}

const PREVIEW_LENGTH = 1200;
const NO_RESULT_SEEN = "No result seen: the run ended before the result of this call was known.";

/** Shows previews of the arguments, output and result of a call, with buttons that load the complete values. */
export function ToolDetails({ run, tool }: { run: RunView; tool: ToolItem }) {
  const [full, setFull] = useState<ToolCall | null>(null);
  const [showsAll, setShowsAll] = useState(false);
  const load = () => api.toolCall(run.runId, tool.callId);
  const isResultTruncated = tool.resultTruncation !== null && full === null;
  const isOutputTruncated = tool.outputDropped > 0 && full === null;

  const result = valueText(full?.result ?? tool.result);
  const output = full?.output ?? tool.output.map((piece) => piece.text).join("");
  const failed = tool.state === "stopped" ? null : tool.error;
  const errorText = failed === null ? null : findErrorText(result, failed);
  const error = errorText ?? failed;
  const hasResult =
    tool.endedAt !== null && (tool.error === null || (failed !== null && errorText === null && result !== ""));
  const isLong = [output, error ?? "", hasResult ? result : ""].some((text) => text.length > PREVIEW_LENGTH);
  const shown = (text: string) =>
    showsAll || text.length <= PREVIEW_LENGTH ? text : `${text.slice(0, PREVIEW_LENGTH)}…`;
  const approval = tool.approval === null ? undefined : run.items[tool.approval];
  /** The text to copy, or a function that fetches the complete text if the shown one is truncated. */
  const fullText = (text: string, isTruncated: boolean, of: (call: ToolCall) => string) =>
    isTruncated ? async () => of(await load()) : text;
  return (
    <>
      {approval?.kind === "approval" && <DecisionLine approval={approval} />}
      <ArgumentsPart run={run} tool={tool} />
      {output !== "" && (
        <Part title="Output" copy={fullText(output, isOutputTruncated, (call) => call.output)}>
          <ToolOutput text={output} isPreview={!showsAll} isTruncated={isOutputTruncated} />
        </Part>
      )}
      {failed !== null && error !== null && (
        <Part
          title="Error"
          copy={fullText(
            error,
            isResultTruncated && errorText !== null,
            (call) => findErrorText(valueText(call.result), failed) ?? failed,
          )}
        >
          <div className="tool-error" role="note">
            <JsonView value={shown(error)} isText />
          </div>
        </Part>
      )}
      {hasResult && tool.state === "unseen" && (
        <Part title="Result" copy="">
          <p className="quiet">{NO_RESULT_SEEN}</p>
        </Part>
      )}
      {hasResult && tool.state !== "unseen" && (
        <Part title="Result" copy={fullText(result, isResultTruncated, (call) => valueText(call.result))}>
          {result === "" ? (
            <p className="quiet">It returned nothing.</p>
          ) : (
            <JsonView value={showsAll ? (full?.result ?? tool.result) : shown(result)} />
          )}
        </Part>
      )}
      {(isLong || isResultTruncated || isOutputTruncated) && !showsAll && (
        <LoadCompleteButton
          what={errorText === null ? "whole result" : "whole error"}
          size={tool.resultTruncation?.size}
          load={isResultTruncated || isOutputTruncated ? load : async () => full}
          onLoaded={(call) => {
            setFull(call);
            setShowsAll(true);
          }}
        />
      )}
    </>
  );
}

function ArgumentsPart({ run, tool }: { run: RunView; tool: ToolItem }) {
  const [full, setFull] = useState<ToolCall | null>(null);
  const args = full?.args ?? tool.args;
  const parts = useMemo(() => splitArguments({ ...tool, args }), [tool, args]);
  const load = () => api.toolCall(run.runId, tool.callId);
  const isTruncated = tool.argsTruncation !== null && full === null;
  const copy = isTruncated ? async () => valueText((await load()).args ?? "") : valueText(args ?? tool.argsText);
  return (
    <>
      <ToolArguments parts={parts} head={<PartHead title="Arguments" copy={copy} />} />
      {isTruncated && (
        <LoadCompleteButton what="whole arguments" size={tool.argsTruncation?.size} load={load} onLoaded={setFull} />
      )}
    </>
  );
}

interface PartProps {
  readonly title: string;
  /** The text to copy, or a function that fetches it. */
  readonly copy: string | (() => Promise<string>);
}

function PartHead({ title, copy }: PartProps) {
  return (
    <header className="part-head">
      <span>{title}</span>
      {copy !== "" && <CopyButton text={copy} label={`Copy ${title.toLowerCase()}`} />}
    </header>
  );
}

function Part({ title, copy, children }: PartProps & { readonly children: ReactNode }) {
  return (
    <section className="part">
      <PartHead title={title} copy={copy} />
      {children}
    </section>
  );
}
