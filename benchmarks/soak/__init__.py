"""The soak test (`make soak`): holds the machine's highest rate for minutes, and checks for lost events and growth."""
