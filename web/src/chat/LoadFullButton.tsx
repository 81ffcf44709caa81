import { useState } from "react";
import { formatBytes } from "../log/format";
import { Button } from "../ui/Button";
import { ApiError } from "../wire/api";

interface Props<T> {
  /** What the button loads, e.g. "the whole answer". */
  readonly what: string;
  readonly size: number;
  load(): Promise<T>;
  onWhole(whole: T): void;
}

/** Loads the rest of a value that the log has only the beginning of. */
export function LoadFullButton<T>({ what, size, load, onWhole }: Props<T>) {
  const [trouble, setTrouble] = useState<string | null>(null);
  const [isLoading, setLoading] = useState(false);
  const show = async () => {
    setLoading(true);
    setTrouble(null);
    try {
      onWhole(await load());
    } catch (error) {
      setTrouble(error instanceof ApiError ? error.message : "It could not be read.");
    }
    setLoading(false);
  };
  return (
    <>
      <Button className="whole-button" disabled={isLoading} onClick={show}>
        {isLoading ? "Loading …" : `Show ${what} (${formatBytes(size)})`}
      </Button>
      {trouble !== null && (
        <p className="tool-error" role="alert">
          {trouble}
        </p>
      )}
    </>
  );
}
