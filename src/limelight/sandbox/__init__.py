"""Sandbox: runs code of a model in a separate, confined process.

`levels` finds the strongest level that works on this machine: `bubblewrap` (namespaces), `landlock` (Landlock and
seccomp, where namespaces are forbidden) or `none` (a process without confinement). `policy` describes what a sandbox
may use. `launch` and `process` start a sandbox and end it. `worker` (Python code) and `command_runner` (shell commands)
are the programs inside; they call `confinement` before they run any code of a model.
"""
