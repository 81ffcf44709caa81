import { Brain } from "lucide-react";
import { memo } from "react";
import { duration } from "../log/readable";
import type { MessageItem } from "../log/view";
import { useNow } from "../parts/useNow";
import { straight } from "../text/visible";
import { QuietRow } from "./QuietRow";

/** What the agent thinks. While it thinks, the end of the thought can be read in the line. */
export const Thought = memo(function Thought({ item }: { item: MessageItem }) {
  const isThinking = item.endedAt === null;
  const now = useNow(isThinking);
  return (
    <QuietRow
      itemKey={item.key}
      kind="thought"
      icon={Brain}
      title={isThinking ? "Thinking" : "Thought"}
      gist={gist(item.text, isThinking)}
      text={item.text}
      time={duration((item.endedAt ?? Math.max(now, item.at)) - item.at)}
      isGrowing={isThinking}
    />
  );
});

/** Its first line, or its last words while it grows. */
function gist(text: string, isGrowing: boolean): string {
  // Some models say what it is, which the row says already.
  const line = straight(text)
    .trim()
    .replace(/^thoughts?:\s*/i, "")
    .replace(/\s+/g, " ");
  return isGrowing && line.length > 120 ? `…${line.slice(-120)}` : line.slice(0, 200);
}
