import { useState } from "react";

/** Which rows the user opened or closed. A virtual list takes rows away and brings them back: they must not forget. */
const choices = new Map<string, boolean>();

/** Open or not, as the user chose; until then as `otherwise` says. */
export function useCollapsed(key: string, otherwise: boolean): [boolean, (open: boolean) => void] {
  const [chosen, setChosen] = useState(() => choices.get(key));
  const choose = (open: boolean) => {
    choices.set(key, open);
    setChosen(open);
  };
  return [chosen ?? otherwise, choose];
}
