import { ChevronDown } from "lucide-react";
import { Fragment, memo } from "react";
import { duration } from "../log/plainText";
import { Button } from "../ui/Button";
import { Menu, MenuChoice, MenuChoices, MenuLabel } from "../ui/Menu";
import { StateIcon } from "../ui/StateIcon";
import { firstLine, type Version } from "./versions";

interface Props {
  readonly versions: readonly Version[];
  readonly index: number;
  readonly onPick: (key: string) => void;
}

/** "step 2 of 3", and the list of all of them. */
export const VersionMenu = memo(function VersionMenu({ versions, index, onPick }: Props) {
  const current = versions[index];
  return (
    <Menu
      label="Versions of the code"
      trigger={
        <Button look="quiet" className="code-step">
          step {index + 1} of {versions.length}
          <ChevronDown size={14} aria-hidden="true" />
        </Button>
      }
    >
      <MenuChoices value={current?.key ?? ""} onChoose={onPick}>
        {versions.map((version, place) => (
          <Fragment key={version.key}>
            {version.turn !== versions[place - 1]?.turn && <MenuLabel>Turn {version.turn || "?"}</MenuLabel>}
            <MenuChoice value={version.key} about={<About version={version} place={place} />}>
              <span className="code-choice">{firstLine(version.code.text) || "nothing yet"}</span>
            </MenuChoice>
          </Fragment>
        ))}
      </MenuChoices>
    </Menu>
  );
});

function About({ version: { item }, place }: { version: Version; place: number }) {
  const spent = item.durationMs ?? (item.endedAt === null ? null : item.endedAt - item.ranAt);
  return (
    <span className="code-choice-about">
      <StateIcon state={item.state} size={12} />
      step {place + 1} · {item.name}
      {spent !== null && ` · ${duration(spent)}`}
    </span>
  );
}
