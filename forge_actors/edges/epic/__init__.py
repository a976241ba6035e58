"""The files, the locks and the processes of EPIC runs."""
