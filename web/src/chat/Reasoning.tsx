import { Brain } from "lucide-react";
import { memo } from "react";
import { duration } from "../log/plainText";
import type { MessageItem } from "../log/view";
import { useNow } from "../ui/useNow";
import { gist } from "./preview";
import { QuietRow } from "./StatusRow";

/** Some models say what it is, which the row says already. */
const NAME = /^\s*thoughts?:\s*/i;

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
      gist={gist(item.text.replace(NAME, ""), isThinking)}
      text={item.text}
      time={duration((item.endedAt ?? Math.max(now, item.at)) - item.at)}
      isGrowing={isThinking}
    />
  );
});
