import { Dialog } from "radix-ui";
import type { ReactNode } from "react";
import { Sidebar } from "../sessions/Sidebar";
import { ClockProvider } from "../ui/clock";
import { AccountProvider } from "./AccountContext";
import { AgentsProvider } from "./AgentsContext";
import { Commands } from "./Commands";
import { Conversation } from "./Conversation";
import { LayoutProvider, useLayout } from "./LayoutContext";
import { NavigationProvider, useNavigation } from "./NavigationContext";
import { NewSession } from "./NewSession";
import { useStores } from "./pageStores";
import { SessionProvider, useCurrentSession } from "./SessionContext";
import { SessionHeader } from "./SessionHeader";
import { NarrowTabs, SidePanel } from "./SidePanel";
import { useTabTitle } from "./tabTitle";
import "./app.css";

/** The whole page: the list of sessions, the current conversation, and its panes (code, terminal, timeline, files). */
export function App() {
  return (
    <ClockProvider value={useStores().clock}>
      <AccountProvider>
        <AgentsProvider>
          <NavigationProvider>
            <SessionProvider>
              <LayoutProvider>
                <Page />
              </LayoutProvider>
            </SessionProvider>
          </NavigationProvider>
        </AgentsProvider>
      </AccountProvider>
    </ClockProvider>
  );
}

function Page() {
  const { route } = useNavigation();
  const { live, title, newest } = useCurrentSession();
  const { isNarrow, tab, hasSidePanel } = useLayout();
  useTabTitle(title, newest?.state);
  const isSideShown = live !== null && (isNarrow ? tab !== "chat" : hasSidePanel);
  return (
    <div className={`app ${isSideShown && !isNarrow ? "app-three" : ""}`}>
      {isNarrow ? (
        <Drawer>
          <Sidebar />
        </Drawer>
      ) : (
        <Sidebar />
      )}
      <main className="middle">
        <SessionHeader />
        {isNarrow && live !== null && <NarrowTabs />}
        {isNarrow && isSideShown && <SidePanel />}
        {route.sessionId === null ? <NewSession /> : <Conversation />}
      </main>
      {!isNarrow && isSideShown && <SidePanel />}
      <Commands />
    </div>
  );
}

/** The sidebar of narrow screens, which slides over the page. */
function Drawer({ children }: { children: ReactNode }) {
  const { isDrawerOpen, setDrawerOpen } = useNavigation();
  return (
    <Dialog.Root open={isDrawerOpen} onOpenChange={setDrawerOpen}>
      <Dialog.Portal>
        <Dialog.Overlay className="dialog-veil" />
        <Dialog.Content className="drawer" aria-describedby={undefined}>
          <Dialog.Title className="visually-hidden">Conversations</Dialog.Title>
          {children}
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}
