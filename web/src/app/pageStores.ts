import { createContext } from "react";
import { ChatState } from "../chat/chatContext";
import { AuthStore } from "../client/auth";
import { SessionExport } from "../client/sessionExport";
import { SessionList } from "../client/sessionList";
import { Clock } from "../ui/clock";
import { useRequiredContext } from "../ui/hooks";
import { ThemeStore } from "./theme";

/** The stores of data that all parts of the page share: login, theme, sessions, export, chat state and clock. */
export class Stores {
  readonly auth = new AuthStore();
  readonly theme = new ThemeStore();
  readonly sessions = new SessionList();
  readonly sessionExport = new SessionExport();
  readonly chat = new ChatState();
  readonly clock = new Clock();
}

export const StoresContext = createContext<Stores | null>(null);

export const useStores = () => useRequiredContext(StoresContext);
