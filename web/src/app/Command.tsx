import { CopyButton } from "../ui/CopyButton";
import "./welcome.css";

/** A few lines to copy. */
export function Snippet({ text, label }: { text: string; label: string }) {
  return (
    <div className="welcome-snippet">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, so the keyboard has to get there */}
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={text} label={label} />
    </div>
  );
}
