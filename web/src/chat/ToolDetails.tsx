import { type ReactNode, useState } from "react";
import { codeOf } from "../log/code";
import { argsText, bytes, textOf } from "../log/readable";
import type { RunView, ToolItem } from "../log/view";
import { Button } from "../parts/Button";
import { CopyButton } from "../parts/CopyButton";
import { CodeBlock } from "../text/CodeBlock";
import { Value } from "../text/Value";
import { visible } from "../text/visible";
import { ApiError, api, type ToolCall } from "../wire/api";
import { Decided } from "./Decided";

const PREVIEW = 1200;

/** What went into a call and what came out: code as code, previews at first, the whole on a click. */
export function ToolDetails({ run, tool }: { run: RunView; tool: ToolItem }) {
  const [whole, setWhole] = useState<ToolCall | null>(null);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [showsAll, setShowsAll] = useState(false);
  const showAll = async () => {
    setShowsAll(true);
    if (whole !== null || (tool.resultCut === null && tool.outputDropped === 0)) return;
    try {
      setWhole(await api.call(run.runId, tool.callId));
    } catch (error) {
      setShowsAll(false);
      setTrouble(error instanceof ApiError ? error.message : "The whole result could not be read.");
    }
  };
  // What is copied is the whole, also while only its beginning is shown.
  const fetched = () => api.call(run.runId, tool.callId);
  const result = textOf(whole?.result ?? tool.result);
  const output = whole?.output ?? tool.output.map((piece) => piece.text).join("");
  const isCut = tool.resultCut !== null || tool.outputDropped > 0 || result.length > PREVIEW || output.length > PREVIEW;
  const shown = (text: string) => (showsAll || text.length <= PREVIEW ? text : `${text.slice(0, PREVIEW)}…`);
  const asked = tool.approval === null ? undefined : run.items[tool.approval];
  return (
    <>
      {asked?.kind === "approval" && <Decided asked={asked} />}
      <Arguments run={run} tool={tool} />
      {output !== "" && (
        <Part
          title="Output"
          text={output}
          copy={tool.outputDropped > 0 && whole === null ? async () => (await fetched()).output : output}
        >
          <Value value={shown(output)} />
        </Part>
      )}
      {tool.error !== null && tool.state !== "stopped" && (
        <p className="tool-error" role="note">
          {visible(tool.error)}
        </p>
      )}
      {tool.endedAt !== null && tool.error === null && (
        <Part
          title="Result"
          text={result}
          copy={tool.resultCut !== null && whole === null ? async () => textOf((await fetched()).result) : result}
          empty="It returned nothing."
        >
          {result !== "" && <Value value={showsAll ? (whole?.result ?? tool.result) : shown(result)} />}
        </Part>
      )}
      {isCut && !showsAll && (
        <Button onClick={showAll}>
          Show whole result{tool.resultCut === null ? "" : ` (${bytes(tool.resultCut.size)})`}
        </Button>
      )}
      {trouble !== null && <p className="tool-error">{trouble}</p>}
    </>
  );
}

function Arguments({ run, tool }: { run: RunView; tool: ToolItem }) {
  const [whole, setWhole] = useState<ToolCall | null>(null);
  const code = codeOf(tool);
  const args = whole?.args ?? tool.args ?? tool.argsText;
  const others = code === null ? args : withoutCode(args, code.text);
  if (typeof others === "object" && Object.keys(others).length === 0 && code === null) return null;
  return (
    <>
      {code !== null && <CodeBlock code={code.text} language={code.language} />}
      {(typeof others === "string" ? others !== "" && code === null : Object.keys(others).length > 0) && (
        <Part
          title="Arguments"
          text={argsText(args)}
          copy={
            tool.argsCut !== null && whole === null
              ? async () => argsText((await api.call(run.runId, tool.callId)).args ?? "")
              : argsText(args)
          }
        >
          <Value value={others} />
        </Part>
      )}
      {tool.argsCut !== null && whole === null && (
        <Button onClick={async () => setWhole(await api.call(run.runId, tool.callId))}>
          Show whole arguments ({bytes(tool.argsCut.size)})
        </Button>
      )}
    </>
  );
}

function withoutCode(args: NonNullable<ToolItem["args"]>, code: string) {
  if (typeof args === "string") return args;
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== code));
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
      <header className="part-head">
        <span>{title}</span>
        {text !== "" && <CopyButton text={copy} label={`Copy ${title.toLowerCase()}`} />}
      </header>
      {text === "" && empty !== undefined ? <p className="quiet">{empty}</p> : children}
    </section>
  );
}
