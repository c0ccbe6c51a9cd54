"""`python -m inga` is `inga`."""

from inga.cli.main import main

raise SystemExit(main())
