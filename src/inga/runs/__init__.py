"""Live runs on this machine: a process for every member, started, listened to, judged and reaped."""
