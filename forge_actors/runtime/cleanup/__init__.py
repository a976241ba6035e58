"""The clean-up program, `python -m forge_actors.runtime.cleanup`.

It is started by a runtime (`edges.cleanup.process`), does one run and ends. `__main__`
is the process, `program` the run, `desk` what a class has to work with, `talk` the
conversation with the owner of the store, and `classes` the list of what is visited.
"""
