import { useCallback, useState } from "react";
import { readStored, writeStored } from "../client/storage";

/** A choice that outlives a reload. */
export function useStoredState<T>(key: string, first: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => readStored(key, first));
  const choose = useCallback(
    (next: T) => {
      writeStored(key, next);
      setValue(next);
    },
    [key],
  );
  return [value, choose];
}
