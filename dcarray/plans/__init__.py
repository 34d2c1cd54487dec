"""Plans: made from requests in this process or another one, and kept on disk.

`provider` says where a plan comes from, and `requests.make_plan` makes one.  `client` has the planning
process do that, whose main loop is `server`.  `disk_store` keeps plans in the cache folder.
"""
