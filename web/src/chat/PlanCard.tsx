import { ListTree } from "lucide-react";
import { memo } from "react";
import type { PlanItem } from "../log/view";
import { gist } from "./preview";
import { QuietRow } from "./StatusRow";

/** What the agent means to do, in its own words. */
export const PlanCard = memo(function PlanCard({ item }: { item: PlanItem }) {
  return (
    <QuietRow
      itemKey={item.key}
      kind="plan"
      icon={ListTree}
      title={item.update ? "Plan changed" : "Plan"}
      gist={gist(item.text, item.isGrowing)}
      text={item.text}
      isGrowing={item.isGrowing}
      isOpenAtFirst={!item.update}
    />
  );
});
