"""`python -m tasks.prepare.export`: the process in which one model is exported, or with `--serve` the export server."""

import sys

if sys.argv[1:] == ["--serve"]:
    from tasks.prepare.export.server import Server

    Server().serve()
else:
    from tasks.prepare.export.child import main

    sys.exit(main())
