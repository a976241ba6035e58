"""Makes the documentation: `python -m docs.making FOLDER`, offline.

What is written by hand, the pages of `design/` and what follows from the code are put
into one folder as the sources of Sphinx; what that builds is looked through for links
that lead nowhere and for anything that would be fetched from elsewhere.
"""
