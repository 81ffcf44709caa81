import { Dialog } from "radix-ui";
import type { ReactNode } from "react";

interface Props {
  readonly isOpen: boolean;
  onOpenChange(open: boolean): void;
  readonly children: ReactNode;
}

/** The left side on narrow screens: it slides over the page. */
export function Drawer({ isOpen, onOpenChange, children }: Props) {
  return (
    <Dialog.Root open={isOpen} onOpenChange={onOpenChange}>
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
