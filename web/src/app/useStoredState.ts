import { useCallback, useState } from "react";
import { recall, remember } from "../client/storage";

/** A choice that outlives a reload. */
export function useRemembered<T>(key: string, first: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => recall(key, first));
  const choose = useCallback(
    (next: T) => {
      remember(key, next);
      setValue(next);
    },
    [key],
  );
  return [value, choose];
}
