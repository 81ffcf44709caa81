import { keyLabels } from "./shortcuts";
import "./kbd.css";

/** Keyboard keys. */
export function Kbd({ keys }: { keys: string }) {
  return (
    <span className="keys">
      {keyLabels(keys).map((cap) => (
        <kbd key={cap}>{cap}</kbd>
      ))}
    </span>
  );
}
