import { ImageOff } from "lucide-react";
import { memo, useState } from "react";
import { visible } from "../text/invisibleCharacters";
import { artifactAddress } from "../wire/api";

/** An image of this server, in a box whose height is known before it has come. */
export const Picture = memo(function Picture({ artifactId, name }: { artifactId: string; name: string }) {
  const [state, setState] = useState<"loading" | "there" | "broken">("loading");
  if (state === "broken")
    return (
      <div className="files-picture files-picture-broken">
        <ImageOff size={16} aria-hidden="true" /> This image cannot be shown.
      </div>
    );
  return (
    <div className="files-picture" data-state={state}>
      <img
        src={artifactAddress(artifactId)}
        alt={visible(name) || "Image"}
        loading="lazy"
        decoding="async"
        onLoad={() => setState("there")}
        onError={() => setState("broken")}
      />
    </div>
  );
});
