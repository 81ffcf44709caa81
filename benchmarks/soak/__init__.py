"""The soak test (`make soak`): the highest rate of the machine for minutes, with a check for lost events and growth."""
