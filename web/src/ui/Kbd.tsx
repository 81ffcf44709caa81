import { keyLabels } from "./shortcuts";
import "./kbd.css";

/** A key, or several, as caps. */
export function Kbd({ keys }: { keys: string }) {
  return (
    <span className="keys">
      {keyLabels(keys).map((cap) => (
        <kbd key={cap}>{cap}</kbd>
      ))}
    </span>
  );
}
