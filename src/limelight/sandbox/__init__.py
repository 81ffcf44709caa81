"""Sandbox: runs code that a model has written in a separate, confined process.

`levels` finds the strongest level that works on this machine: `bubblewrap` (namespaces), `landlock` (Landlock and
seccomp, where namespaces are forbidden) or `none` (a process without confinement). `policy` describes what a sandbox
may use. `launch` and `process` start a sandbox and end it. `worker` (Python code) and `command_runner` (shell commands)
are the programs inside. Both use `supervisor`: it starts a child that confines itself (`confinement`) before it runs
any code of a model, and allows or refuses each process and thread that the child wants to create.
"""
