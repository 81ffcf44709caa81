"""Settings: the command line overrides the environment, which overrides `config.toml`, which overrides defaults.

`schema` defines the settings, `load` reads them, `validation` reports mistakes, and `setting_locations` finds the lines
of settings in the file.
"""

from limelight.config.load import load_settings
from limelight.config.schema import AgentSettings, Setting, Settings, ToolSettings, all_settings

__all__ = ["AgentSettings", "Setting", "Settings", "ToolSettings", "all_settings", "load_settings"]
