"""Stage → script text (bash, PowerShell), nothing else: pure functions of a `ScriptContext`."""
