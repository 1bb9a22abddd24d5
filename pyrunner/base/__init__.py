"""What every room stands on: errors, cancellation, threads, logging, platform names. Imports no other room."""
