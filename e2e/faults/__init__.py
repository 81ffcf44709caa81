"""What takes long to try: faults of a machine, on real servers of their own."""
