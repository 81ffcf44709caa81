import { Tooltip as Radix } from "radix-ui";
import type { ReactElement, ReactNode } from "react";
import "./overlays.css";

interface Props {
  /** What a mark or an icon means. It is no replacement for a label. */
  text: ReactNode;
  side?: "top" | "right" | "bottom" | "left";
  children: ReactElement;
}

/** A few words beside what the pointer or the focus is on. */
export function Tooltip({ text, side = "top", children }: Props) {
  return (
    <Radix.Provider delayDuration={400}>
      <Radix.Root>
        <Radix.Trigger asChild>{children}</Radix.Trigger>
        <Radix.Portal>
          <Radix.Content className="tooltip" side={side} sideOffset={6} collisionPadding={8}>
            {text}
          </Radix.Content>
        </Radix.Portal>
      </Radix.Root>
    </Radix.Provider>
  );
}
