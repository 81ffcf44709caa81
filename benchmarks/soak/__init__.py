"""A long time under as much as the machine can take: `make soak`. What is lost, what doubles, what grows."""
