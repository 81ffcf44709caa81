import { useState } from "react";
import { ApiError } from "../client/api";
import { formatBytes } from "../log/displayText";
import { Button } from "../ui/Button";

interface Props<T> {
  /** What the button loads, e.g. "the whole answer". */
  readonly what: string;
  /** Size of the complete value in bytes; undefined if the page already has it. */
  readonly size: number | undefined;
  load(): Promise<T>;
  onLoaded(full: T): void;
}

/** A button that loads the complete value of a truncated preview. */
export function LoadCompleteButton<T>({ what, size, load, onLoaded }: Props<T>) {
  const [loadError, setLoadError] = useState<string | null>(null);
  const [isLoading, setLoading] = useState(false);
  const show = async () => {
    setLoading(true);
    setLoadError(null);
    try {
      onLoaded(await load());
    } catch (error) {
      setLoadError(error instanceof ApiError ? error.message : "It could not be read.");
    }
    setLoading(false);
  };
  return (
    <>
      <Button disabled={isLoading} onClick={show}>
        {isLoading ? "Loading …" : `Show ${what}${size === undefined ? "" : ` (${formatBytes(size)})`}`}
      </Button>
      {loadError !== null && (
        <p className="tool-error" role="alert">
          {loadError}
        </p>
      )}
    </>
  );
}
