"""Scripts for conversations of several turns with Agno's agents, and the messages that they then have."""

REMEMBER = """
- match: my name
  turns:
    - steps: [{text: Hello Ada.}]
- match: number
  turns:
    - steps: [{tool_calls: [{name: add, arguments: {a: 2, b: 3}}]}]
    - steps: [{text: It is five.}]
- match: wait for me
  turns:
    - steps: [{text: Let me see.}, {tool_calls: [{name: slow, arguments: {name: it, seconds: 30}}]}]
- match: "?"
  turns:
    - steps: [{text: I see.}]
"""
NAMED = [("user", "my name is Ada"), ("assistant", "Hello Ada.")]
COUNTED = [("user", "a number"), ("assistant", "[add]"), ("tool", "5"), ("assistant", "It is five.")]
