"""One room per executor behind `Executor` and `ExecutorProvider`; they are loaded by name through entry points."""
