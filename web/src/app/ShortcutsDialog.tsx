import { Dialog } from "../ui/Dialog";
import { Kbd } from "../ui/Kbd";
import type { ShortcutInfo } from "../ui/shortcuts";
import "../ui/kbd.css";

interface Props {
  open: boolean;
  onOpenChange: (open: boolean) => void;
  keys: readonly ShortcutInfo[];
}

/** Every key that does something, by group. */
export function ShortcutsDialog({ open, onOpenChange, keys }: Props) {
  const groups = [...new Set(keys.map(groupOf))];
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="Keys">
      {groups.map((group) => (
        <section key={group} className="keys-group">
          <h3>{group}</h3>
          <dl>
            {keys
              .filter((one) => groupOf(one) === group)
              .map((one) => (
                <div key={`${one.keys} ${one.title}`} className="keys-row">
                  <dt>{one.title}</dt>
                  <dd>
                    <Kbd keys={one.keys} />
                  </dd>
                </div>
              ))}
          </dl>
        </section>
      ))}
    </Dialog>
  );
}

function groupOf(one: ShortcutInfo): string {
  return one.group ?? "Anywhere";
}
