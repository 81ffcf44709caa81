"""What the bounded end of a process waits for, and nothing else: the rescue of a database that was deleted.

The store holds it while it writes; `server/process/forced_exit.py` ends the process when it is free.
"""

import threading

UNCUT = threading.RLock()
"""Whoever holds it is not cut off. To be held by the thread that does the work, and no longer than that takes."""
