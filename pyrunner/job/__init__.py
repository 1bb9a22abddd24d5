"""The life of one job: stages, variables, trace, masking, timeouts, cancel."""
