import { ListTree } from "lucide-react";
import { memo } from "react";
import type { PlanItem } from "../log/view";
import { straight } from "../text/visible";
import { QuietRow } from "./QuietRow";

/** What the agent means to do, in its own words. */
export const PlanCard = memo(function PlanCard({ item }: { item: PlanItem }) {
  return (
    <QuietRow
      itemKey={item.key}
      kind="plan"
      icon={ListTree}
      title={item.update ? "Plan changed" : "Plan"}
      gist={straight(item.text).trim().replace(/\s+/g, " ").slice(0, 200)}
      text={item.text}
      isGrowing={item.isGrowing}
      isOpenAtFirst={!item.update}
    />
  );
});
