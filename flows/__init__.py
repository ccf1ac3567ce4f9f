import os

if os.environ.get("ETFARM_LOG"):
    from flows.json_log import set_up_json_log

    set_up_json_log()
