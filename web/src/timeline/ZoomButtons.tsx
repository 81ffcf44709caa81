import { Maximize2, ZoomIn, ZoomOut } from "lucide-react";
import { Button } from "../ui/Button";

interface Props {
  readonly isFit: boolean;
  readonly onZoom: (factor: number) => void;
  readonly onFit: () => void;
}

export function ZoomButtons({ isFit, onZoom, onFit }: Props) {
  return (
    <div className="timeline-zoom" role="toolbar" aria-label="Zoom">
      <Button look="quiet" aria-label="Zoom out" title="Zoom out (−)" disabled={isFit} onClick={() => onZoom(0.5)}>
        <ZoomOut size={15} aria-hidden="true" />
      </Button>
      <Button look="quiet" aria-label="Zoom in" title="Zoom in (+, or Ctrl and the wheel)" onClick={() => onZoom(2)}>
        <ZoomIn size={15} aria-hidden="true" />
      </Button>
      <Button look="quiet" aria-label="Show the whole run" title="Whole run (0)" disabled={isFit} onClick={onFit}>
        <Maximize2 size={14} aria-hidden="true" />
      </Button>
    </div>
  );
}
