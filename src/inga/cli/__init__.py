"""The command `inga`: one module a subcommand; parse, call, print, exit code."""
