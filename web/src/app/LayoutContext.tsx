import { createContext, type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { readStored, useStoredState, writeStored } from "../client/browserStorage";
import type { Item, RunView } from "../log/viewModel";
import { useMediaQuery, useRequiredContext } from "../ui/hooks";
import { activePane, type Pane } from "./activePane";
import { useNavigation } from "./NavigationContext";
import { useCurrentSession } from "./SessionContext";

type DialogName = "palette" | "shortcuts" | "rename" | "delete";

/** Which parts of the page are shown, and functions that show or hide them. */
export interface Layout {
  readonly isNarrow: boolean;
  /** The tab that is shown on a narrow screen. */
  readonly tab: Pane | "chat";
  /** The pane that the side panel of a wide screen shows. */
  readonly pane: Pane;
  readonly hasSidePanel: boolean;
  readonly isSearching: boolean;
  readonly openDialogs: ReadonlySet<DialogName>;
  showPane(pane: Pane): void;
  showTab(tab: Pane | "chat"): void;
  toggleSidePanel(): void;
  setSearching(isSearching: boolean): void;
  setDialogOpen(dialog: DialogName, isOpen: boolean): void;
  /** Scrolls the conversation to an item, or to its run if `item` is null. The shown pane does not change. */
  selectItem(run: RunView, item: Item | null): void;
}

export const LayoutContext = createContext<Layout | null>(null);

export const useLayout = () => useRequiredContext(LayoutContext);

export function LayoutProvider({ children }: { children: ReactNode }) {
  const { route, select } = useNavigation();
  const { newest } = useCurrentSession();
  const { sessionId } = route;
  const isNarrow = useMediaQuery("(max-width: 899px)");
  const [hasSidePanel, setHasSidePanel] = useStoredState("side", true);
  const [chosenPane, setChosenPane] = useState<Pane | null>(null);
  const [tab, showTab] = useState<Pane | "chat">("chat");
  const [isSearching, setSearching] = useState(false);
  const [openDialogs, setOpenDialogs] = useState<ReadonlySet<DialogName>>(new Set());
  const active = useActivePane(newest);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the choices belong to one session
  useEffect(() => {
    showTab("chat");
    setChosenPane(null);
    setSearching(false);
  }, [sessionId]);
  const showPane = useCallback(
    (pane: Pane) => {
      setChosenPane(pane);
      writeStored("pane", pane);
      if (isNarrow) showTab(pane);
      else setHasSidePanel(true);
    },
    [isNarrow, setHasSidePanel],
  );
  const selectItem = useCallback(
    (run: RunView, item: Item | null) => {
      showTab("chat");
      setChosenPane((before) => before ?? active);
      select(run, item);
    },
    [active, select],
  );
  const layout = useMemo<Layout>(
    () => ({
      isNarrow,
      tab,
      pane: chosenPane ?? active,
      hasSidePanel,
      isSearching,
      openDialogs,
      showPane,
      showTab,
      toggleSidePanel: () => setHasSidePanel(!hasSidePanel),
      setSearching,
      setDialogOpen: (dialog, isOpen) =>
        setOpenDialogs((before) => new Set(isOpen ? [...before, dialog] : [...before].filter((one) => one !== dialog))),
      selectItem,
    }),
    [isNarrow, tab, chosenPane, active, hasSidePanel, isSearching, openDialogs, showPane, setHasSidePanel, selectItem],
  );
  return <LayoutContext value={layout}>{children}</LayoutContext>;
}

/** Returns the pane that fits the agent's current activity; the previous pane if none fits. */
function useActivePane(run: RunView | undefined): Pane {
  const last = useRef<Pane>(readStored<Pane>("pane", "timeline"));
  if (run !== undefined) last.current = activePane(run) ?? last.current;
  return last.current;
}
