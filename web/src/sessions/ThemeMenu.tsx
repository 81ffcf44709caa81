import { Monitor, Moon, Sun } from "lucide-react";
import type { Theme, ThemeChoice } from "../app/theme";
import { Button } from "../ui/Button";
import { Menu, MenuChoice, MenuChoices } from "../ui/Menu";

const CHOICES: Record<ThemeChoice, { word: string; icon: typeof Sun }> = {
  system: { word: "As the system", icon: Monitor },
  light: { word: "Light", icon: Sun },
  dark: { word: "Dark", icon: Moon },
};

export function ThemeMenu({ theme }: { theme: Theme }) {
  const { word, icon: Icon } = CHOICES[theme.choice];
  return (
    <Menu
      label="Light or dark"
      side="top"
      align="end"
      trigger={
        <Button look="quiet" aria-label={`Light or dark: ${word}`} title={`Light or dark: ${word}`}>
          <Icon size={15} aria-hidden="true" />
        </Button>
      }
    >
      <MenuChoices value={theme.choice} onChoose={(choice) => theme.set(choice as ThemeChoice)}>
        {Object.entries(CHOICES).map(([choice, { word: one }]) => (
          <MenuChoice key={choice} value={choice}>
            {one}
          </MenuChoice>
        ))}
      </MenuChoices>
    </Menu>
  );
}
