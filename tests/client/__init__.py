"""The client against real servers: in this process, in processes that die, behind connections that are cut."""
