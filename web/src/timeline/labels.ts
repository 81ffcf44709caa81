/** What a row of the timeline is called. */

import { telling } from "../log/plainText";
import type { Item, RunView } from "../log/view";

export interface Name {
  readonly label: string;
  readonly about: string;
}

/** Only the first line is shown; a long text that grows must not be read as a whole each time. */
const HEAD = 400;

export function nameOf(item: Item, run: RunView): Name {
  switch (item.kind) {
    case "tool":
      return { label: item.name || "tool", about: telling(item.args) };
    case "step":
      return { label: stepName(item.stepKind, item.number), about: item.error ?? "" };
    case "thought":
      return { label: "Thinking", about: firstLine(item.text) };
    case "text":
      return { label: run.answer?.item === item.index ? "Answer" : "Text", about: firstLine(item.text) };
    case "approval":
      return { label: "Approval", about: [item.name, telling(item.args)].filter(Boolean).join(" ") };
    default:
      return { label: item.kind, about: "" };
  }
}

function stepName(kind: string, number: number): string {
  return kind === "action" || kind === ""
    ? `Step ${number}`
    : `${kind.charAt(0).toUpperCase()}${kind.slice(1)} ${number}`;
}

function firstLine(text: string): string {
  return telling(text.slice(0, HEAD));
}
