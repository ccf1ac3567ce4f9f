import os

from flows.server.settings import set_up_log

set_up_log()  # a worker starts a process for each flow run
# Not by devices/settings.py: a wrong value of another setting must not end an import.
if os.environ.get("ETFARM_LOG"):
    from flows.json_log import set_up_json_log

    set_up_json_log()
