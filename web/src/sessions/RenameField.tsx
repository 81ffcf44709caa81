import { useEffect, useRef, useState } from "react";

interface Props {
  title: string;
  onRename: (title: string) => void;
  onCancel: () => void;
}

const LONGEST = 200;

/** The title of a conversation, to be written anew: Enter or a click elsewhere keeps it, Esc does not. */
export function RenameField({ title, onRename, onCancel }: Props) {
  const [text, setText] = useState(title);
  const field = useRef<HTMLInputElement>(null);
  const over = useRef(false);
  useEffect(() => {
    field.current?.focus();
    field.current?.select();
  }, []);
  const finish = (keep: boolean) => {
    if (over.current) return;
    over.current = true;
    const wanted = text.trim();
    if (keep && wanted && wanted !== title) onRename(wanted);
    else onCancel();
  };
  return (
    <input
      ref={field}
      className="sessions-rename"
      aria-label="Title"
      maxLength={LONGEST}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onBlur={() => finish(true)}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.nativeEvent.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
        event.preventDefault();
        finish(event.key === "Enter");
      }}
    />
  );
}
