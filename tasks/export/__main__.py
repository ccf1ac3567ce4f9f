"""`python -m tasks.export`: the process in which one model is exported."""

import sys

from tasks.export.child import main

sys.exit(main())
