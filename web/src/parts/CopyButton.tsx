import { Check, Copy } from "lucide-react";
import { useEffect, useState } from "react";
import { Button } from "./Button";

/** Copies a text; `text` may be a function, for what is large or has to be fetched first. */
export function CopyButton({
  text,
  label = "Copy",
}: {
  text: string | (() => string | Promise<string>);
  label?: string;
}) {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = async () => {
    await navigator.clipboard.writeText(typeof text === "function" ? await text() : text);
    setCopied(true);
  };
  return (
    <Button look="quiet" aria-label={copied ? "Copied" : label} title={copied ? "Copied" : label} onClick={copy}>
      {copied ? <Check size={14} /> : <Copy size={14} />}
    </Button>
  );
}
