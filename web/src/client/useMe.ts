/** Who the server takes us for; null on one that needs no key, where there is nobody else to be. */

import { useEffect, useState } from "react";
import { api, type Me } from "../wire/api";

export function useMe(): Me | null {
  const [me, setMe] = useState<Me | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    api.me(abort.signal).then(
      (found) => setMe(found.open ? null : found),
      () => {}, // the list of agents says what is wrong with the server
    );
    return () => abort.abort();
  }, []);
  return me;
}
