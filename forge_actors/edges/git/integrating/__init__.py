"""The program that brings the branch of a job into a checkout; standard library only.

It is run by its path, as a job with the claims of that checkout, and is told what to do
in JSON. What would not work is refused before anything is changed: the commit that the
checkout's branch is to be at is made first, beside all that anybody sees.
"""
