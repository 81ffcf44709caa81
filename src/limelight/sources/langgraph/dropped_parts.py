"""What LangGraph can stream and nobody gets to see, each with the reason. All else is translated.

A test holds this against the installed framework, so that a new kind is a decision and not an accident.
"""

from collections.abc import Mapping

DROPS: Mapping[str, str] = {
    "mode values": "the whole state, at every step; taken only from a graph that keeps none, for its answer",
    "mode updates": "repeats every message; interrupts are in `tasks` too",
    "mode checkpoints": "the whole state, as it is stored",
    "mode debug": "`tasks` and `checkpoints` in another form",
    "message human": "the question, which comes back to us, or what a graph tells its models",
    "message HumanMessageChunk": "as `human`",
    "message system": "instructions",
    "message SystemMessageChunk": "as `system`",
    "message chat": "has no role that says who speaks",
    "message ChatMessageChunk": "as `chat`",
    "message function": "the result of a call in a form that came before calls had ids",
    "message FunctionMessageChunk": "as `function`",
    "message ToolMessageChunk": "results are not streamed in pieces; output is",
    "message remove": "an order to the state, not something said",
    "message of a middleware": "what a model says to a middleware, to sum up or to choose; its cost is told",
    "message again": "the whole of what came in pieces, or what was said in an earlier turn",
    "result of another turn": "of a call that this run has not made",
}
