import { keyLabels } from "./useShortcuts";
import "./kbd.css";

/** Shows the keys of a shortcut. */
export function Kbd({ keys }: { keys: string }) {
  return (
    <span className="keys">
      {keyLabels(keys).map((cap) => (
        <kbd key={cap}>{cap}</kbd>
      ))}
    </span>
  );
}
