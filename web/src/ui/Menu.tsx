import { Check, type LucideIcon } from "lucide-react";
import { DropdownMenu as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";
import "./overlays.css";

interface MenuProps {
  /** The button that opens the menu. */
  trigger: ReactElement;
  /** Accessible name. */
  label: string;
  align?: "start" | "center" | "end";
  side?: "top" | "bottom";
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  /** Called when the menu closes. `event.preventDefault()` keeps the focus from returning to the trigger. */
  onCloseAutoFocus?: (event: Event) => void;
  children: ReactNode;
}

/** A menu of actions or choices. */
export function Menu({
  trigger,
  label,
  align = "start",
  side = "bottom",
  open,
  onOpenChange,
  onCloseAutoFocus,
  children,
}: MenuProps) {
  return (
    // Not modal, so that screen readers can still read the page, and a click outside of the menu has its effect.
    <Radix.Root modal={false} {...(open === undefined ? {} : { open })} {...(onOpenChange ? { onOpenChange } : {})}>
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          className="menu"
          aria-label={label}
          align={align}
          side={side}
          sideOffset={4}
          collisionPadding={8}
          {...(onCloseAutoFocus ? { onCloseAutoFocus } : {})}
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

interface ItemProps {
  icon?: LucideIcon;
  /** The keyboard shortcut of the item, shown beside it. */
  hint?: string;
  danger?: boolean;
  onSelect: () => void;
  children: ReactNode;
}

export function MenuItem({ icon: Icon, hint, danger = false, onSelect, children }: ItemProps) {
  return (
    <Radix.Item className={`menu-item ${danger ? "menu-danger" : ""}`} onSelect={onSelect}>
      {Icon && <Icon size={15} aria-hidden="true" />}
      <span className="menu-words">{children}</span>
      {hint && <kbd className="menu-hint">{hint}</kbd>}
    </Radix.Item>
  );
}

export function MenuSeparator() {
  return <Radix.Separator className="menu-separator" />;
}

export function MenuLabel({ children }: { children: ReactNode }) {
  return <Radix.Label className="menu-label">{children}</Radix.Label>;
}

/** A group of menu items of which one is selected. */
export const MenuRadioGroup = Radix.RadioGroup;

export function MenuRadioItem({ value, about, children }: { value: string; about?: ReactNode; children: ReactNode }) {
  return (
    <Radix.RadioItem className="menu-item menu-choice" value={value}>
      <span className="menu-mark">
        <Radix.ItemIndicator>
          <Check size={15} aria-hidden="true" />
        </Radix.ItemIndicator>
      </span>
      <span className="menu-words">
        {children}
        {about && <span className="menu-about">{about}</span>}
      </span>
    </Radix.RadioItem>
  );
}
