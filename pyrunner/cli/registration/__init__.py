"""``register``, step by step: what to ask, which token flow, how to save and how to take it back."""
