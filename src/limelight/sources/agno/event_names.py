"""Agno's events by their names: which become a line for people, and which have no counterpart. A test holds this
against the framework, so that a new event is noticed."""

STATUS = {
    "MemoryUpdateStarted": "Updating the memory",
    "SessionSummaryStarted": "Summing up the conversation",
    "CompressionStarted": "Compressing the results of tools",
    "CompactionStarted": "Compacting the conversation",
    "ParserModelResponseStarted": "Bringing the answer into shape",
    "OutputModelResponseStarted": "Writing the answer",
    "FollowupsStarted": "Thinking of what to ask next",
}
"""Events that a person may like to see, and the line that says so."""

DROPS = frozenset(
    {
        "RunContentCompleted",  # the request or the run that ends says the same
        "MemoryUpdateCompleted",
        "SessionSummaryCompleted",
        "CompressionCompleted",
        "CompactionCompleted",
        "ParserModelResponseCompleted",
        "OutputModelResponseCompleted",
        "FollowupsCompleted",
        "PreHookStarted",
        "PreHookCompleted",
        "PostHookStarted",
        "PostHookCompleted",
        "ReasoningStarted",  # the first piece of a thought opens it
        "TaskIterationCompleted",
    }
)
"""Events without a counterpart."""
