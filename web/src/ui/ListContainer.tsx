import type { CustomContainerComponentProps } from "virtua";

/**
 * What a virtual list stands in. The list would take no clicks while it scrolls; but one that follows its end scrolls with
 * each token, so that nothing in it could be clicked, and all of its styles would be worked out anew each time.
 */
export function ListContainer({ style, children, ref }: CustomContainerComponentProps) {
  const { pointerEvents: _, ...others } = style;
  return (
    <div ref={ref} style={others}>
      {children}
    </div>
  );
}
