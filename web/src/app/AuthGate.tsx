import { type ReactNode, useSyncExternalStore } from "react";
import { access } from "../client/access";
import { KeyScreen } from "./ApiKeyScreen";

/** The page, or what stands before it on a server that needs a key. */
export function Door({ children }: { children: ReactNode }) {
  const { isLocked } = useSyncExternalStore(access.subscribe, access.getSnapshot);
  return isLocked ? <KeyScreen onEnter={access.enter} /> : children;
}
