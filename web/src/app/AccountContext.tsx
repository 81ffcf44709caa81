import { createContext, type ReactNode, useCallback, useMemo, useState } from "react";
import type { CurrentUser } from "../client/api";
import { useCurrentUser } from "../client/auth";
import { useRequiredContext } from "../ui/hooks";
import { useStores } from "./pageStores";

/** The user who is signed in, and the sign-out. The screen that signs in is in `AuthGate`. */
export interface Account {
  /** The user of this browser's API key; null on a server that needs no key. */
  readonly user: CurrentUser | null;
  readonly signOut: () => void;
  /** Error of the last sign-out; "" if there is none. */
  readonly signOutError: string;
}

export const AccountContext = createContext<Account | null>(null);

export const useAccount = () => useRequiredContext(AccountContext);

export function AccountProvider({ children }: { children: ReactNode }) {
  const { auth } = useStores();
  const user = useCurrentUser();
  const [signOutError, setSignOutError] = useState("");
  const signOut = useCallback(() => {
    auth.logOut().catch((reason: Error) => setSignOutError(`Not signed out: ${reason.message}`));
  }, [auth]);
  const account = useMemo<Account>(() => ({ user, signOut, signOutError }), [user, signOut, signOutError]);
  return <AccountContext value={account}>{children}</AccountContext>;
}
