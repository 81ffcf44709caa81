import { keyCaps } from "./shortcuts";
import "./kbd.css";

/** A key, or several, as caps. */
export function Keys({ keys }: { keys: string }) {
  return (
    <span className="keys">
      {keyCaps(keys).map((cap) => (
        <kbd key={cap}>{cap}</kbd>
      ))}
    </span>
  );
}
