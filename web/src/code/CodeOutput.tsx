/** Shows the end of a call's output and the beginning of its result below its code. */

import { memo, useRef } from "react";
import { formatBytes, formatDuration, valueText } from "../log/displayText";
import type { OutputPiece, ToolItem } from "../log/viewModel";
import { AnsiText } from "../text/AnsiText";
import { Button } from "../ui/Button";
import { useNow } from "../ui/clock";
import { useStickToEnd } from "../ui/hooks";
import { STATE_LABELS, StateIcon } from "../ui/StateIcon";

export const MAX_OUTPUT = 20_000;
export const MAX_RESULT = 4_000;

interface VisibleOutput {
  readonly pieces: readonly OutputPiece[];
  /** Number of characters of output before the shown ones. */
  readonly omittedBefore: number;
  readonly result: string;
  /** Number of characters of the result that are not shown; null if the log truncates the result. */
  readonly omittedAfter: number | null;
}

/** Returns the parts of a call that are shown: the end of its output and the beginning of its result. */
export function visibleOutput(item: ToolItem): VisibleOutput {
  const pieces: OutputPiece[] = [];
  let room = MAX_OUTPUT;
  let omittedBefore = item.outputDropped;
  for (const piece of item.output.toReversed()) {
    const kept = room > 0 ? piece.text.slice(-room) : "";
    if (kept === piece.text) pieces.unshift(piece);
    else if (kept !== "") pieces.unshift({ ...piece, text: kept });
    omittedBefore += piece.text.length - kept.length;
    room -= kept.length;
  }
  const full = item.endedAt === null ? "" : valueText(item.result);
  const result = full.slice(0, MAX_RESULT);
  return {
    pieces,
    omittedBefore,
    result,
    omittedAfter: item.resultTruncation ? null : full.length - result.length,
  };
}

interface Props {
  readonly item: ToolItem;
  readonly isComplete: boolean;
  readonly onTerminal: ((item: ToolItem) => void) | undefined;
}

/** Shows the live output and the result of a call. */
export const CodeOutput = memo(function CodeOutput({ item, isComplete, onTerminal }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const onScroll = useStickToEnd(box, item.endedAt === null, item);
  const { pieces, omittedBefore, result, omittedAfter } = visibleOutput(item);
  const isEmpty = pieces.length === 0 && result === "";
  const rest = onTerminal && (
    <Button variant="quiet" className="code-terminal" onClick={() => onTerminal(item)}>
      open in terminal
    </Button>
  );
  return (
    <section className="code-output" aria-label="Output">
      <header className="code-output-head">
        <StateIcon state={item.state} size={14} />
        <span>{isComplete ? STATE_LABELS[item.state] : "being written"}</span>
        {isComplete && <CallDuration item={item} />}
      </header>
      {/* biome-ignore lint/a11y/useSemanticElements: a region that scrolls has to be focusable */}
      <div
        className="code-printed"
        ref={box}
        role="region"
        aria-label="What it printed"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so it must be reachable by keyboard
        tabIndex={0}
        onScroll={onScroll}
      >
        {omittedBefore > 0 && (
          <p className="code-left">
            … {omittedBefore.toLocaleString("en")} characters before this{rest ? ": " : " are in the terminal"}
            {rest}
          </p>
        )}
        {pieces.map((piece, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the index identifies a piece of output
          <AnsiText key={index} className={`code-${piece.stream}`} text={piece.text} />
        ))}
        {result !== "" && (
          <div className={item.error === null ? "code-result" : "code-result code-error"}>
            <span className="code-result-name">{item.error === null ? "result" : "error"}</span>
            <AnsiText text={result} />
          </div>
        )}
        {omittedAfter !== 0 && (
          <p className="code-left">
            {omittedAfter === null
              ? `… ${formatBytes(item.resultTruncation?.size ?? 0)} in all: open the tool's row`
              : `… ${omittedAfter.toLocaleString("en")} more characters: open the tool's row`}
          </p>
        )}
        {isEmpty && isComplete && (
          <p className="code-left">{item.endedAt === null ? "Nothing printed yet" : "It printed nothing"}</p>
        )}
      </div>
    </section>
  );
});

function CallDuration({ item }: { item: ToolItem }) {
  const isRunning = item.state === "running";
  const now = useNow(isRunning);
  const ms = item.durationMs ?? (item.endedAt ?? (isRunning ? now : item.ranAt)) - item.ranAt;
  return <span className="code-spent">{formatDuration(ms)}</span>;
}
