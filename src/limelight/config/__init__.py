"""Settings: command line over environment over `config.toml` over defaults.

`schema` says what can be set, `loading` puts the sources together, `mistakes` says what is wrong and where, `plainly`
in which words; `lines` finds the line, and `words` the word that was meant. Nothing here knows which agents there are.
"""

from limelight.config.load import load_settings
from limelight.config.schema import AgentSettings, Setting, Settings, ToolSettings, all_settings

__all__ = ["AgentSettings", "Setting", "Settings", "ToolSettings", "all_settings", "load_settings"]
