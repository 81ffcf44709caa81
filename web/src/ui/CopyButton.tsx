import { Check, Copy, X } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "./Button";
import { copyText } from "./clipboard";

type State = "idle" | "copying" | "copied" | "failed";

const LABELS = { copying: "Copying …", copied: "Copied", failed: "Could not copy" };
const ICONS = { idle: Copy, copying: Copy, copied: Check, failed: X };
const SHOWN_MS = { copied: 1500, failed: 5000 };

/** A button that copies a text. `text` may be a function if the text is large or has to be fetched. */
export function CopyButton({
  text,
  label = "Copy",
}: {
  text: string | (() => string | Promise<string>);
  label?: string;
}) {
  const [state, setState] = useState<State>("idle");
  useEffect(() => {
    if (state !== "copied" && state !== "failed") return;
    const timer = setTimeout(() => setState("idle"), SHOWN_MS[state]);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = async () => {
    if (state === "copying") return;
    try {
      const given = typeof text === "function" ? text() : text;
      if (typeof given !== "string") setState("copying");
      setState((await copyText(await given)) ? "copied" : "failed");
    } catch {
      setState("failed");
    }
  };
  const words = state === "idle" ? label : LABELS[state];
  const Icon = ICONS[state];
  return (
    <Button variant="quiet" aria-label={words} title={words} onClick={copy}>
      <Icon size={14} aria-hidden="true" />
      {(state === "copying" || state === "failed") && words}
    </Button>
  );
}
