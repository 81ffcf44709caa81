"""The soak test (`make soak`): streams at the highest rate for minutes, and detects lost events and memory growth."""
