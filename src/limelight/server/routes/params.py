"""Query parameters that several routes share."""

from limelight.server.endpoint import Param

FORMAT = Param("format", "Stream format: typed, tool_calls, v2, records, or another that is installed")
AFTER = Param("after", "Cursor: everything up to it is known. The header `Last-Event-ID` wins over it")
