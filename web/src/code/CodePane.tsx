import { ArrowDownToLine, ChevronDown, ChevronLeft, ChevronRight, CodeXml, Download, FileDiff } from "lucide-react";
import { Fragment, memo, useMemo, useRef, useState } from "react";
import { api } from "../client/api";
import { codeOf } from "../log/codeArguments";
import { formatBytes, formatDuration } from "../log/displayText";
import type { Item, RunView, ToolItem } from "../log/viewModel";
import { Button } from "../ui/Button";
import { CopyButton } from "../ui/CopyButton";
import { download } from "../ui/download";
import { Menu, MenuLabel, MenuRadioGroup, MenuRadioItem } from "../ui/Menu";
import { StateIcon } from "../ui/StateIcon";
import { useShortcuts } from "../ui/useShortcuts";
import { CodeEditor } from "./CodeEditor";
import { CodeOutput } from "./CodeOutput";
import { NEXT_VERSION, PREVIOUS_VERSION } from "./codeShortcuts";
import { codeFileName, firstLine, type Version, type VersionCache, versionsOf } from "./codeVersions";
import { diffLines } from "./diff";
import "./code.css";

interface VersionChoice {
  /** Index of the shown version; -1 if there is none. */
  readonly index: number;
  readonly isFollowing: boolean;
  readonly select: (key: string) => void;
  readonly follow: () => void;
}

/** Returns the version of the code to show: the newest one, until the user selects another version or its call. */
function useVersion(versions: readonly Version[], focus: ToolItem | null): VersionChoice {
  const [selected, setSelected] = useState<string | null>(null);
  const [lastFocus, setLastFocus] = useState<string | null>(null);
  const focusKey = focus?.key ?? null;
  if (focusKey !== lastFocus) {
    setLastFocus(focusKey);
    if (versions.some((version) => version.key === focusKey)) setSelected(focusKey);
  }
  const place = selected === null ? -1 : versions.findIndex((version) => version.key === selected);
  return {
    index: place < 0 ? versions.length - 1 : place,
    isFollowing: place < 0,
    select: setSelected,
    follow: () => setSelected(null),
  };
}

interface VersionMenuProps {
  readonly versions: readonly Version[];
  readonly index: number;
  readonly onSelect: (key: string) => void;
}

/** A button such as "step 2 of 3" that opens a menu of all versions. */
const VersionMenu = memo(function VersionMenu({ versions, index, onSelect }: VersionMenuProps) {
  const current = versions[index];
  return (
    <Menu
      label="Versions of the code"
      trigger={
        <Button variant="quiet" className="code-step">
          step {index + 1} of {versions.length}
          <ChevronDown size={14} aria-hidden="true" />
        </Button>
      }
    >
      <MenuRadioGroup value={current?.key ?? ""} onValueChange={onSelect}>
        {versions.map((version, place) => (
          <Fragment key={version.key}>
            {version.turn !== versions[place - 1]?.turn && <MenuLabel>Turn {version.turn || "?"}</MenuLabel>}
            <MenuRadioItem value={version.key} about={<VersionDescription version={version} place={place} />}>
              <span className="code-choice ellipsis">{firstLine(version.code.text) || "nothing yet"}</span>
            </MenuRadioItem>
          </Fragment>
        ))}
      </MenuRadioGroup>
    </Menu>
  );
});

function VersionDescription({ version: { item }, place }: { version: Version; place: number }) {
  const spent = item.durationMs ?? (item.endedAt === null ? null : item.endedAt - item.ranAt);
  return (
    <span className="code-choice-about">
      <StateIcon state={item.state} size={12} />
      step {place + 1} · {item.name}
      {spent !== null && ` · ${formatDuration(spent)}`}
    </span>
  );
}

interface Props {
  readonly runs: readonly RunView[];
  /** The call that is selected in the conversation or in another pane. */
  readonly focus: ToolItem | null;
  readonly onSelect: (item: Item) => void;
  /** Shows a call in the terminal pane. */
  readonly onTerminal?: (item: ToolItem) => void;
}

/** The code pane: all versions of the code that the agent ran, with their output. */
const CodePane = memo(function CodePane({ runs, focus, onSelect, onTerminal }: Props) {
  const pane = useRef<HTMLDivElement>(null);
  const [cache] = useState<VersionCache>(() => new WeakMap());
  const versions = useMemo(() => versionsOf(runs, cache), [runs, cache]);
  const choice = useVersion(versions, focus);
  const [showsChanges, setShowsChanges] = useState(false);
  const [downloadFailed, setDownloadFailed] = useState(false);
  const version = versions[choice.index];
  const before = versions[choice.index - 1];

  const select = (key: string) => {
    const selected = versions.find((one) => one.key === key);
    if (selected === undefined) return;
    choice.select(key);
    onSelect(selected.item);
  };
  const selectAt = (index: number) => select(versions[index]?.key ?? "");

  const stepBy = (by: number) => {
    // Only a visible pane has client rects; the keys do nothing while the pane is hidden.
    if (pane.current?.getClientRects().length) selectAt(choice.index + by);
  };
  useShortcuts([
    { ...PREVIOUS_VERSION, run: () => stepBy(-1) },
    { ...NEXT_VERSION, run: () => stepBy(1) },
  ]);

  if (version === undefined)
    return (
      <div className="code-pane code-empty">
        <CodeXml size={20} aria-hidden="true" />
        <p>When the agent writes code, it appears here, version by version.</p>
      </div>
    );
  // Copying and saving use the full code, also if only its beginning is shown.
  const fullCode = () => fetchFullCode(runs, version);
  const name = codeFileName(choice.index + 1, version.code.language);
  return (
    <div className="code-pane" ref={pane}>
      <div className="code-bar">
        <Button
          variant="quiet"
          aria-label="Previous step"
          title="Previous step ( [ )"
          disabled={before === undefined}
          onClick={() => selectAt(choice.index - 1)}
        >
          <ChevronLeft size={15} />
        </Button>
        <VersionMenu versions={versions} index={choice.index} onSelect={select} />
        <Button
          variant="quiet"
          aria-label="Next step"
          title="Next step ( ] )"
          disabled={choice.index >= versions.length - 1}
          onClick={() => selectAt(choice.index + 1)}
        >
          <ChevronRight size={15} />
        </Button>
        <span className="code-space" />
        {!choice.isFollowing && (
          <Button variant="quiet" title="Always show the newest step" onClick={choice.follow}>
            <ArrowDownToLine size={14} aria-hidden="true" />
            Follow
          </Button>
        )}
        <Button
          variant="quiet"
          className="code-toggle"
          aria-label="Changes"
          aria-pressed={showsChanges}
          title="Changes since the previous step"
          disabled={before === undefined}
          onClick={() => setShowsChanges(!showsChanges)}
        >
          <FileDiff size={14} aria-hidden="true" />
          <span className="code-word">Changes</span>
        </Button>
        <CopyButton label="Copy the code" text={version.item.argsTruncation === null ? version.code.text : fullCode} />
        <Button
          variant="quiet"
          aria-label={`Download ${name}`}
          title={`Download ${name}`}
          onClick={async () => {
            setDownloadFailed(false);
            try {
              const text = version.item.argsTruncation === null ? version.code.text : await fullCode();
              download(name, [text], "text/plain");
            } catch {
              setDownloadFailed(true);
            }
          }}
        >
          <Download size={14} />
          {downloadFailed && <span role="alert">Could not download</span>}
        </Button>
      </div>
      <div className="code-parts">
        <Code version={version} before={showsChanges ? before : undefined} number={choice.index + 1} />
        <CodeOutput
          key={version.key}
          item={version.item}
          isComplete={version.code.isComplete}
          onTerminal={onTerminal}
        />
      </div>
    </div>
  );
});

const Code = memo(function Code({
  version: { code, item },
  before,
  number,
}: {
  version: Version;
  before: Version | undefined;
  number: number;
}) {
  const now = trimEnd(code.text);
  const lines = useMemo(() => (before ? diffLines(trimEnd(before.code.text), now) : null), [before, now]);
  const text = useMemo(() => (lines ? lines.map((line) => line.text).join("\n") : now), [lines, now]);
  return (
    <div className="code-side">
      {item.argsTruncation && (
        <p className="code-left">
          Only the beginning; {formatBytes(item.argsTruncation.size)} in all: open the tool's row
        </p>
      )}
      <CodeEditor text={text} lines={lines} language={code.language} label={`Code of step ${number}`} />
    </div>
  );
});

/** The code without empty lines at its end. */
function trimEnd(code: string): string {
  return code.replace(/\n+$/, "");
}

async function fetchFullCode(runs: readonly RunView[], { item }: Version): Promise<string> {
  const run = runs.find((one) => one.items[item.index]?.key === item.key);
  if (run === undefined) throw new Error("the call is gone");
  const { args } = await api.toolCall(run.runId, item.callId);
  const code = codeOf({ ...item, args });
  if (code === null) throw new Error("the whole of the call has no code");
  return code.text;
}

export default CodePane;
