import type { CustomContainerComponentProps } from "virtua";

/**
 * The container of a virtual list. It omits the `pointer-events: none` that the list sets while it scrolls.
 *
 * A list that scrolls along with new content scrolls with each token. With that style nothing in it could be clicked,
 * and all styles would be recalculated each time.
 */
export function ListContainer({ style, children, ref }: CustomContainerComponentProps) {
  const { pointerEvents: _, ...others } = style;
  return (
    <div ref={ref} style={others}>
      {children}
    </div>
  );
}
